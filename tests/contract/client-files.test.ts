/** Goal: `taskmill files` and `taskmill cp`, and the methods of the client. Source: docs/client.md, docs/programs.md. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import { runClient } from '../support/client.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { tempDir } from '../support/temp.ts'

let pair: Pair
beforeAll(async () => {
  pair = await startPair()
  await pair.script('made', 'mkdir -p dist/e; echo one > dist/a; echo two > "dist/e/b ü"; ln -s / dist/root')
  await pair.script('made:dist', 'echo of the other > a; echo x > b:c')
  await pair.control.submit([{ id: 'local', type: 'noop' }])
  await pair.control.allEnded()
})
afterAll(() => pair[Symbol.asyncDispose]())

const client = async (...args: string[]) => {
  const { exitCode, stderr, envelope } = await runClient(args, { url: pair.control.url })
  return { exitCode, stderr, data: envelope.data, message: envelope.error?.message }
}

test('files lists a directory', async () => {
  expect(await client('files', 'made', 'dist')).toMatchObject({
    exitCode: 0,
    data: { attempt: 1, path: 'dist', entries: [{ name: 'a', size: 4 }, { name: 'e' }, { name: 'root' }] },
  })
  expect(await client('files', 'made', '--attempt', '2')).toMatchObject({ exitCode: 1 })
  expect((await client('files', 'local')).message).toContain('run it as runtime.command')
})

test('cp saves a file and a directory, and prints nothing else', async () => {
  using temp = tempDir()
  const at = (name: string) => join(temp.path, name)
  const file = { type: 'file', bytes: 4, files: 1, resumed_at: 0 }
  expect(await client('cp', 'made:dist/a', at('x'))).toMatchObject({
    ...{ exitCode: 0, stderr: '', data: { path: at('x'), ...file } },
  })
  expect(await client('cp', 'made:dist/a', temp.path)).toMatchObject({ data: { path: at('a'), ...file } })
  expect(await client('cp', 'made:dist', temp.path)).toMatchObject({
    data: { path: at('dist'), type: 'directory', bytes: 8, files: 2 },
  })
  expect(readFileSync(at('dist/e/b ü'), 'utf8')).toBe('two\n')
  expect(existsSync(at('dist/root'))).toBe(false)
  expect(await client('cp', 'made:', at('all'))).toMatchObject({ data: { files: 2 } })
  expect(readFileSync(at('all/dist/a'), 'utf8')).toBe('one\n')
})

test('cp of an id with a colon takes the longest id of a task', async () => {
  using temp = tempDir()
  const copied = async (from: string) => {
    const { data, message } = await client('cp', from, join(temp.path, 'x'))
    return (data as { bytes?: number } | undefined)?.bytes ?? message
  }
  expect(await copied('made:dist:a')).toBe('of the other\n'.length)
  expect(await copied('made:dist:b:c')).toBe('x\n'.length)
  expect(await copied('made:dist/a')).toBe('one\n'.length)
  expect(await copied('made:none:a')).toBe('no such file in the workspace: none:a')
  expect(await copied('nobody:a:b')).toBe('no task has one of the ids "nobody:a", "nobody": expected TASK_ID:PATH')
})

test.each([
  ['made:dist/a', '-', 2, 'cp cannot write to standard output'],
  ['made', 'x', 2, 'expected TASK_ID:PATH'],
  ['made:dist/a', '', 2, 'no destination'],
  ['made:none', 'x', 1, 'no such file in the workspace: none'],
  ['nobody:a', 'x', 1, 'task not found: nobody'],
  ['made:dist/a', '/no/such/directory/x', 1, 'ENOENT'],
])('cp %s %s exits %d', async (from, to, exitCode, text) => {
  expect(await client('cp', from, to)).toMatchObject({ exitCode, message: expect.stringContaining(text) })
})

test('a program lists, reads and saves', async () => {
  using temp = tempDir()
  const mill = new Taskmill({ url: pair.control.url })
  const { entries } = await mill.files('made', { path: 'dist/e' })
  expect(entries).toEqual([{ name: 'b ü', type: 'file', size: 4 }])
  let text = ''
  for await (const { bytes } of mill.file('made', 'dist/e/b ü')) text += new TextDecoder().decode(bytes)
  expect(text).toBe('two\n')
  mkdirSync(join(temp.path, 'to'))
  const saved = await mill.saveFile('made', 'dist', join(temp.path, 'to'))
  expect(saved).toMatchObject({ path: join(temp.path, 'to', 'dist'), bytes: 8 })
  const error = await mill.saveFile('made', 'none', temp.path).catch((error) => error)
  expect(error).toMatchObject({ code: 'not_found', status: 404 })
})
