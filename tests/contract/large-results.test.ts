/** Results over 64 KiB lie in files beside the state; nobody notices. Against the built service, across kills. */
import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
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
  expect(resultFiles(control.dataDir)).toEqual([expect.stringMatching(/^1-0-3-[0-9a-f]{8}-\d+\.json$/)])
})

test('a file goes with the record of its task, and stays while the task is replaced', async () => {
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
  const { graph_id } = await control.run(noop('b', large))
  await control.run(noop('b', 'small'))
  expect(await (await control.fetch(`/graphs/${graph_id}/tasks/b`)).json()).toMatchObject({
    replaced: true,
    result: { message: large },
  })
  await control.fetch(`/graphs/${graph_id}/tasks/b`, { method: 'DELETE' })
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

describe('a file that is damaged costs only the result, and its task says so', () => {
  const damages: Record<string, [damage: (paths: string[]) => void, what: string]> = {
    removed: [([a]) => rmSync(a!), 'is gone'],
    cut: [([a]) => truncateSync(a!, 1_000), 'is not what was written'],
    emptied: [([a]) => truncateSync(a!, 0), 'is not what was written'],
    'in the place of another': [([a, b]) => copyFileSync(b!, a!), 'is not what was written'],
  }
  test.each(Object.entries(damages))('%s', async (_, [damage, what]) => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const before = await startControl({ dataDir })
    await before.run({ id: 'a', type: 'mcp', tool_name: 'echo', input: { large } })
    await before.run(noop('b', large))
    await before.stop('SIGTERM')
    await before.dispose()
    const names = resultFiles(dataDir).sort()
    damage(names.map((name) => join(dataDir, 'results', name)))
    await using control = await startControl({ dataDir })
    const lost = `the result is lost: its file results/${names[0]} in the data directory ${what}`
    for (let i = 0; i < 2; i++) {
      const [a, b] = await control.list()
      expect(a).toMatchObject({ id: 'a', status: 'success', error: lost })
      expect(a).not.toHaveProperty('result')
      expect(b!.result).toEqual({ ok: true, message: large })
    }
    expect((await control.get('a')).error).toBe(lost)
    const handle = await (await control.fetch('/mcp/tasks/a')).json()
    expect(handle).toMatchObject({ status: 'success', error: { code: 'internal', message: lost } })
    await using agent = await connectClient(control.url)
    expect(await agent.call('get_logs', { task_id: 'a' })).toMatchObject({ isError: true, text: lost })
    const told = await until(
      () => control.log.filter(({ msg }) => msg === 'a large result is lost'),
      ({ length }) => length > 0,
    )
    expect(told.length).toBe(1)
  })
})

test('the error of a task that failed stays, before what is said of its result', async () => {
  await using control = await startControl({ env: open })
  const { id } = await control.run({ type: 'shell', params: { script: 'head -c 300000 /dev/zero; exit 3' } })
  rmSync(join(control.dataDir, 'results', resultFiles(control.dataDir)[0]!))
  expect((await control.get(id)).error).toMatch(/^command failed: exit status 3; the result is lost: .* is gone$/)
})

test('a file of an earlier version, which has no checksum, is read if it is JSON', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const entry = (file: string) => ({ type: 'os', tool_name: 'noop', status: 'success', result_file: file })
  mkdirSync(join(dataDir, 'results'), { recursive: true })
  writeFileSync(
    join(dataDir, 'state.json'),
    JSON.stringify({ a: { id: 'a', ...entry('1-0-1.json') }, b: { id: 'b', ...entry('1-1-1.json') } }),
  )
  writeFileSync(join(dataDir, 'results', '1-0-1.json'), '{"ok":true}')
  writeFileSync(join(dataDir, 'results', '1-1-1.json'), '{"ok":tr')
  await using control = await startControl({ dataDir })
  expect((await control.get('a')).result).toEqual({ ok: true })
  expect((await control.get('b')).error).toMatch(/^the result is lost: .* is not what was written$/)
})
