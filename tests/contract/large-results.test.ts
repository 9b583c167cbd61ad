/** Results over 64 KiB lie in files beside the state; nobody notices. Against the built service, across kills. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const large = 'ö"\n'.repeat(40_000)
const noop = (id: string, message: string) => ({ id, type: 'noop', params: { message } })
const resultFiles = (dataDir: string) => readdirSync(join(dataDir, 'results'))
const open = { SERVICE_SHELL_POLICY: 'open' }

test('a large result is in GET and in the list, and not in the state file; it survives kill and stop', async () => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '1h'] }
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGTERM'] as const) {
    await using control = await startControl(options)
    if (signal === 'SIGKILL') await control.submit([noop('big', large), noop('small', 'x')])
    expect((await control.ended('big')).result).toEqual({ ok: true, message: large })
    const listed = await control.list()
    expect(listed.map(({ id, result }) => [id, (result as { message: string }).message.length])).toEqual([
      ['big', large.length],
      ['small', 1],
    ])
    expect(Object.keys(await control.get('big'))).not.toContain('result_file')
    expect(resultFiles(options.dataDir).length).toBe(1)
    await control.stop(signal)
  }
  const state = JSON.parse(readFileSync(join(options.dataDir, 'state.json'), 'utf8'))
  expect(state.big.result).toBeUndefined()
  expect(state.small.result).toEqual({ ok: true, message: 'x' })
})

test('the output of a command that fails is kept whole, that of an attempt which is tried again is not', async () => {
  await using control = await startControl({ env: open })
  const script = 'head -c 300000 /dev/zero | tr "\\0" x; exit 3'
  const task = await control.run({ type: 'shell', retry: 2, params: { script } })
  expect(task).toMatchObject({ status: 'failed', attempt: 3, result: { exit_code: 3 } })
  expect((task.result as { stdout: string }).stdout.length).toBe(300_000)
  expect(resultFiles(control.dataDir)).toEqual(['1-0-3.json'])
})

test('a file goes with its task: deleted, replaced or retired', async () => {
  await using control = await startControl({ flags: ['--persist-interval', '20ms'] })
  const noneLeft = () =>
    until(
      () => resultFiles(control.dataDir),
      (names) => names.length === 0,
    )
  await control.run(noop('a', large))
  expect(resultFiles(control.dataDir).length).toBe(1)
  await control.fetch('/tasks/a', { method: 'DELETE' })
  await noneLeft()
  await control.run(noop('b', large))
  await control.run(noop('b', 'small'))
  await noneLeft()
})

test('what a crash left is removed at the next start, and nothing else', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  mkdirSync(join(dataDir, 'results'), { recursive: true })
  writeFileSync(join(dataDir, 'results', '7-0-1.json'), '{}')
  writeFileSync(join(dataDir, 'results', 'notes.txt'), 'mine')
  await using control = await startControl({ dataDir })
  expect(resultFiles(dataDir)).toEqual(['notes.txt'])
  expect((await control.fetch('/health')).status).toBe(200)
})

test('a file that somebody removed costs only the result', async () => {
  await using control = await startControl()
  await control.run(noop('a', large))
  rmSync(join(control.dataDir, 'results', '1-0-1.json'))
  expect(await control.get('a')).not.toHaveProperty('result')
  expect((await control.list()).map(({ id }) => id)).toEqual(['a'])
  expect(existsSync(join(control.dataDir, 'results'))).toBe(true)
})
