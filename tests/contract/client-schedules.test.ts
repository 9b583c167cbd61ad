/** What the client does with schedules. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import { errorOf } from '../support/answers.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'

let control: Control
const dir = tempDir()
const client = (args: readonly string[], stdin?: string) =>
  runClient(['schedule', ...args], { url: control.url, cwd: dir.path, stdin })

beforeAll(async () => {
  control = await startControl()
  writeFileSync(join(dir.path, 'nightly.yaml'), 'params: {day: null}\ntasks:\n  - {id: a, type: noop}\n')
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  dir[Symbol.dispose]()
})

test('a schedule is added from a file, shown, paused, resumed, triggered and deleted, each with one object', async () => {
  const flags = [
    '--cron',
    '0 3 * * *',
    '--timezone',
    'Europe/Berlin',
    '--set',
    'day=1',
    '--jitter',
    '5m',
    '--keep',
    '3',
  ]
  const added = await client(['add', 'nightly.yaml', ...flags])
  expect(added.envelope).toMatchObject({
    ok: true,
    data: { name: 'nightly', cron: '0 3 * * *', timezone: 'Europe/Berlin', jitter: 300_000, keep: 3, paused: false },
  })
  expect((await client(['next', 'nightly'])).envelope.data?.next).toHaveLength(5)
  expect((await client(['pause', 'nightly'])).envelope.data).toMatchObject({ paused: true })
  expect((await client(['resume', 'nightly'])).envelope.data).toMatchObject({ paused: false })
  const { graph_id } = (await client(['trigger', 'nightly'])).envelope.data as { graph_id: string }
  expect((await client(['get', 'nightly'])).envelope.data).toMatchObject({ runs: [{ graph_id }] })
  expect((await client([])).envelope.data).toMatchObject({ schedules: [{ name: 'nightly' }] })
  expect((await client(['list', '-o', 'table'])).stdout).toMatch(
    /^NAME +WHEN +NEXT .*\nnightly +0 3 \* \* \* Europe\/Berlin/,
  )
  expect((await client(['delete', 'nightly'])).envelope).toEqual({ ok: true, data: { name: 'nightly', deleted: true } })
  expect((await client(['get', 'nightly'])).envelope.error).toMatchObject({ status_code: 404 })
})

test('a faulty one is refused, in the terms of its file and with the remedy', async () => {
  const refusal = async (args: readonly string[], stdin?: string) => {
    const { exitCode, envelope } = await client(args, stdin)
    return `${exitCode} ${envelope.error?.message}`
  }
  expect(await refusal(['add', 'nightly.yaml', '--every', '5m'])).toContain('graph: graph needs parameter day')
  expect(await refusal(['add', '--every', '5m'], '{"tasks": []}')).toBe('2 a schedule from standard input needs --name')
  expect(await refusal(['create', 'nightly.yaml'])).toBe('2 unknown subcommand "schedule create" (did you mean "add"?)')
  expect(await refusal(['pause'])).toBe('2 schedule pause needs NAME (see schedule --help)')
  expect(await refusal(['list', '--cron', 'x'])).toBe('2 --cron belongs to schedule add, not to list')
})

test('a program puts, reads and removes a schedule', async () => {
  const mill = new Taskmill({ url: control.url })
  const hourly = { cron: '@hourly', graph: { tasks: [{ id: 'a', type: 'noop' }] } }
  expect((await mill.putSchedule('hourly', hourly, { dryRun: true })).next).toHaveLength(5)
  expect(await mill.schedules()).not.toContainEqual(expect.objectContaining({ name: 'hourly' }))
  await mill.putSchedule('hourly', hourly, { onlyNew: true })
  await expect(mill.putSchedule('hourly', hourly, { onlyNew: true })).rejects.toThrow(
    'there is a schedule hourly already',
  )
  const odd = { method: 'PUT', headers: { 'if-none-match': '"x"' }, body: JSON.stringify(hourly) }
  expect(await errorOf(await control.fetch('/schedules/hourly', odd))).toContain('400 If-None-Match: expected *')
  const put = await mill.putSchedule('hourly', { cron: '@hourly', graph: { tasks: [{ id: 'a', type: 'noop' }] } })
  expect(put.next).toHaveLength(5)
  expect((await mill.pauseSchedule('hourly')).paused).toBe(true)
  expect((await mill.resumeSchedule('hourly')).paused).toBe(false)
  const { graph_id } = await mill.triggerSchedule('hourly')
  expect((await mill.wait(graph_id)).state).toBe('success')
  expect((await mill.getSchedule('hourly')).runs.map((run) => run.graph_id)).toEqual([graph_id])
  expect((await mill.schedules()).map(({ name }) => name)).toEqual(['hourly'])
  await mill.deleteSchedule('hourly')
  expect(await mill.schedules()).toEqual([])
})
