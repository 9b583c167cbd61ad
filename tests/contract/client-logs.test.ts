/** `taskmill logs`: the output of tasks, afterwards and while they write it. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { startInTerminal } from '../support/terminal.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

let control: Control
let temp: TempDir
const client = (args: readonly string[]) => runClient(args, { url: control.url })
const newId = () => crypto.randomUUID()
const script = (text: string) => ({ id: newId(), type: 'shell', params: { script: text } })

beforeAll(async () => {
  temp = tempDir()
  control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

/** A file that a script waits for. */
const signalFile = () => {
  const path = join(temp.path, newId())
  return { wait: `until [ -e ${path} ]; do sleep 0.01; done`, go: () => Bun.write(path, '') }
}

const HOSTILE = "printf '\\033[2J\\033]0;owned\\007\\tend\\r\\n'"

describe('of a task that has ended', () => {
  test('data has both streams', async () => {
    const { id } = await control.run(script('echo one; echo two; echo err >&2'))
    const { exitCode, envelope, stderr } = await client(['logs', id])
    expect({ exitCode, envelope: envelope as object, stderr }).toEqual({
      exitCode: 0,
      envelope: { ok: true, data: { task_id: id, stdout: 'one\ntwo\n', stderr: 'err\n', truncated: false } },
      stderr: '',
    })
    expect((await client(['logs', id, '--tail', '1'])).envelope.data?.stdout).toBe('two\n')
  })

  test('--follow shows them on standard error as well', async () => {
    const { id } = await control.run(script('echo one'))
    const { exitCode, envelope, stderr } = await client(['logs', '-f', id])
    expect({ exitCode, stdout: envelope.data?.stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: 'one\n',
      stderr: 'one\n',
    })
  })

  test('-o table prints them as text', async () => {
    const { id } = await control.run(script(`echo one; echo err >&2; ${HOSTILE}`))
    const { stdout } = await client(['logs', id, '-o', 'table'])
    expect(stdout).toBe('one\n\\e[2J\\e]0;owned\\u{7}\tend\nerr\n')
  })

  test('GRAPH_ID/TASK_ID names a task of a graph with ids of its own', async () => {
    const task = script('echo scoped')
    const answer = await control.post({ scope: 'graph', tasks: [{ ...task, id: 'a/b' }] })
    const { graph_id } = (await answer.json()) as { graph_id: string }
    const name = `${graph_id}/a/b`
    expect((await client(['wait', name, '--fail'])).exitCode).toBe(0)
    const { envelope } = await client(['logs', name])
    expect(envelope.data).toEqual({ task_id: 'a/b', stdout: 'scoped\n', stderr: '', truncated: false })
    expect((await client(['get', name])).envelope.data).toMatchObject({ id: 'a/b', graph_id, status: 'success' })
    expect((await client(['logs', 'a/b'])).envelope.error?.status_code).toBe(404)
    expect((await client(['delete', name])).envelope.data).toEqual({ deleted: [name] })
  })

  test('of an unknown task is a failure without data', async () => {
    const { exitCode, envelope } = await client(['logs', 'nobody', '--follow'])
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 404 })
    expect(envelope).not.toHaveProperty('data')
  })

  test.each([
    ['/x', 'there is no graph id before the slash'],
    ['x/', 'there is no task id after the slash'],
  ])('%s names no task, and no table is printed', async (id, missing) => {
    const { exitCode, stdout, stderr } = await client(['logs', id, '-o', 'table'])
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `taskmill: GET /tasks/${encodeURIComponent(id)} answered 404: task not found: ${id} (${missing}: expected GRAPH_ID/TASK_ID)\n`,
    })
    expect((await client(['get', id])).envelope.error?.message).toContain(missing)
  })

  test('a task id may begin with a slash', async () => {
    const id = `/${newId()}`
    await control.run({ id, type: 'noop' })
    expect((await client(['get', id])).envelope.data).toMatchObject({ id })
  })
})

describe('of a running task', () => {
  test('are shown while they are written', async () => {
    const signal = signalFile()
    const task = script(`echo first; ${signal.wait}; echo last`)
    await control.submit([task])
    const child = Bun.spawn([await binary('taskmill'), 'logs', task.id, '--follow'], {
      env: testEnvironment({ SERVICE_URL: control.url }),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const reader = child.stderr.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('first\n')
    await signal.go()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('last\n')
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({
      ok: true,
      data: { task_id: task.id, stdout: 'first\nlast\n' },
    })
    expect(await child.exited).toBe(0)
  })

  test('Ctrl-C ends the client with what there is, and a terminal obeys nothing', async () => {
    const signal = signalFile()
    const task = script(`${HOSTILE}; ${signal.wait}`)
    await control.submit([task])
    const run = await startInTerminal(['logs', '--follow', task.id], { url: control.url })
    await until(run.output, (output) => output.includes('end'))
    run.type('\x03')
    expect(await run.exited).toBe(130)
    expect(run.output()).toContain('\\e[2J\\e]0;owned\\u{7}\tend\r\n')
    expect(run.output()).not.toMatch(/(?![\r\n\t])\p{Cc}/u)
    expect((await control.get(task.id)).status).toBe('running')
    await signal.go()
    await control.ended(task.id) // or its shell would outlive the service and the file
  })
})
