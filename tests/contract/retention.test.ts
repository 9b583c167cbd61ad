/** `--retention`, `--max-stored-tasks` and `--max-stored-bytes` of the built service. */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const listedIds = async (control: Awaited<ReturnType<typeof startControl>>) =>
  (await control.list()).map(({ id }) => id)

test('retention counts from the end of the whole graph and never takes a task of a live one', async () => {
  await using control = await startControl({ flags: ['--retention', '50ms'] })
  await control.submit([
    { id: 'ended', type: 'noop' },
    { id: 'live', type: 'sleep', params: { duration_ms: 600_000 } },
  ])
  await control.submit([{ id: 'gone', type: 'noop' }])
  await until(
    () => listedIds(control),
    (ids) => !ids.includes('gone'),
  )
  expect(await listedIds(control)).toEqual(['ended', 'live'])
  expect((await control.fetch('/tasks/gone')).status).toBe(404)
  await control.fetch('/tasks/live/cancel', { method: 'POST' })
  await until(async () => (await listedIds(control)).length, 0)
  await control.submit([{ id: 'gone', type: 'noop' }]) // the id is free
})

test('what retention took does not come back after a kill', async () => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), flags: ['--retention', '30ms', '--persist-interval', '1h'] }
  {
    await using control = await startControl(options)
    await control.submit([{ id: 'gone', type: 'noop' }])
    await until(async () => (await listedIds(control)).length, 0)
    await control.stop('SIGKILL')
  }
  await using control = await startControl(options)
  expect(await listedIds(control)).toEqual([])
})

test('beyond --max-stored-tasks the oldest ended graphs go first; without room: 503, and nothing is stored', async () => {
  await using control = await startControl({ flags: ['--max-stored-tasks', '3'] })
  await control.run({ id: 'first', type: 'noop' })
  await control.run({ id: 'second', type: 'noop' })
  await control.submit([{ id: 'live', type: 'sleep', params: { duration_ms: 600_000 } }])
  await control.run({ id: 'third', type: 'noop' })
  expect(await listedIds(control)).toEqual(['second', 'live', 'third'])
  const response = await control.post({ tasks: ['a', 'b', 'c'].map((id) => ({ id, type: 'noop' })) })
  expect([response.status, await response.json()]).toEqual([
    503,
    { error: 'no room for 3 more tasks: graphs that have not ended hold 1 of at most 3 (--max-stored-tasks)' },
  ])
  expect((await control.fetch('/tasks/a')).status).toBe(404)
  await control.submit([
    { id: 'a', type: 'noop' },
    { id: 'b', type: 'noop' },
  ])
})

test('a graph with more tasks than are ever kept is 413 at once, before its tasks are looked at', async () => {
  await using control = await startControl({ flags: ['--max-stored-tasks', '300'] })
  const error = (count: number) =>
    `the graph has ${count} tasks, but at most 300 are kept (--max-stored-tasks): split it, or raise the limit`
  // One of them is no task: the graph is refused before anybody looks.
  const many = [...Array.from({ length: 999 }, (_, i) => ({ id: `t${i}`, type: 'noop' })), 7]
  const response = await control.post({ tasks: many })
  expect([response.status, await response.json()]).toEqual([413, { error: error(1_000) }])
  expect(await control.list()).toEqual([])
  await control.submit(Array.from({ length: 300 }, (_, i) => ({ id: `t${i}`, type: 'noop' })))
})

test('a small graph with more tasks than are ever kept is 413 too', async () => {
  await using control = await startControl({ flags: ['--max-stored-tasks', '2'] })
  const response = await control.post({ tasks: ['a', 'b', 'c'].map((id) => ({ id, type: 'noop' })) })
  expect(response.status).toBe(413)
})

test('beyond --max-stored-bytes the oldest ended graphs go, with their files, also at a start with less', async () => {
  using dir = tempDir()
  const options = (maxBytes: number) => ({
    dataDir: join(dir.path, 'data'),
    flags: ['--max-stored-bytes', String(maxBytes), '--persist-interval', '20ms'],
  })
  const echo = (id: string) => ({ id, type: 'mcp', tool_name: 'echo', params: { message: 'x'.repeat(100_000) } })
  const filesOf = () => readdirSync(join(dir.path, 'data', 'results')).length
  {
    await using control = await startControl(options(250_000))
    for (const id of ['first', 'second', 'third']) await control.run(echo(id))
    await until(async () => (await listedIds(control)).length, 2)
    expect(await listedIds(control)).toEqual(['second', 'third'])
    await until(filesOf, (count) => count === 2)
    await control.stop('SIGKILL')
  }
  await using control = await startControl(options(150_000))
  expect(await listedIds(control)).toEqual(['third'])
  await until(filesOf, (count) => count === 1)
})
