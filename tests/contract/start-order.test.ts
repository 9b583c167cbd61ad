/**
 * `priority` and `not_before`: which task starts next, and when at the earliest. Method: a slot, or a place in the queue of a
 * runtime service, that a task holds until a file is there; kills of both services.
 */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const OPEN = { SERVICE_SHELL_POLICY: 'open' }
const shell = (id: string, script: string, more: object = {}) => ({ id, type: 'shell', params: { script }, ...more })
const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const ms = (time: string | undefined) => Date.parse(time!)

describe('the highest priority', () => {
  test('starts first, of equals the first that came, also after a kill; a child has that of its parent', async () => {
    using dir = tempDir()
    const [go, order] = [join(dir.path, 'go'), join(dir.path, 'order')]
    const note = (id: string, more: object = {}) => shell(id, `echo ${id} >> ${order}`, more)
    const options = { env: OPEN, flags: ['--max-concurrency', '1'], dataDir: join(dir.path, 'data') }
    {
      await using control = await startControl(options)
      await control.submit([shell('holds', waitFor(go))])
      await control.submit([note('plain'), note('low', { priority: -100 }), note('high', { priority: 100 })])
      const urgent = { tasks: [note('urgent'), note('least', { priority: -1 })], priority: 5 }
      expect((await control.post(urgent)).status).toBe(202)
      const map = { for_each: [1, 2], priority: 6 }
      await control.submit([note('late'), shell('map', `echo map >> ${order}`, map)])
      expect(await control.get('high')).toMatchObject({ priority: 100, status: 'pending' })
      await control.stop('SIGKILL')
    }
    await using control = await startControl(options)
    writeFileSync(go, '')
    const ids = ['plain', 'low', 'high', 'urgent', 'least', 'late', 'map']
    for (const id of ids) expect(await control.ended(id)).toMatchObject({ status: 'success' })
    const lines = (await Bun.file(order).text()).trim().split('\n')
    expect(lines).toEqual(['high', 'map', 'map', 'urgent', 'plain', 'late', 'least', 'low'])
  })

  test('starts first in the queue of a runtime service, also after both were killed', async () => {
    await using pair = await startPair({ runtimeFlags: ['--max-running-tasks', '1'] })
    const note = (id: string) => `echo ${id} >> ${pair.file('order')}`
    await pair.script('holds', `echo runs > ${pair.file('order')}; ${waitFor(pair.file('go'))}`)
    await until(() => pair.lines('order'), ['runs'])
    await pair.script('plain', note('plain'))
    await pair.script('low', note('low'), { priority: -1 })
    await pair.script('high', note('high'), { priority: 1 })
    for (const id of ['plain', 'low', 'high'])
      await until(async () => (await pair.control.get(id)).waiting?.reason, 'runtime')
    await pair.stopRuntime('SIGKILL')
    await pair.startRuntime()
    writeFileSync(pair.file('go'), '')
    for (const id of ['plain', 'low', 'high']) expect((await pair.control.ended(id)).status).toBe('success')
    expect(pair.lines('order')).toEqual(['runs', 'high', 'plain', 'low'])
  })
})

test('tenants take turns: thousands of tasks of one hold up the only one of another for one start', async () => {
  await using pair = await startPair({ controlFlags: ['--max-concurrency', '1'] })
  const { control } = pair
  const submitted = (id: string, tenant: string, script = `echo ${tenant} >> ${pair.file('order')}`) => ({
    ...{ id, type: 'runtime' },
    params: { script, control_context: { tenant } },
  })
  await control.submit([submitted('holds', 'many', `echo runs; ${waitFor(pair.file('go'))}`)])
  await pair.running('holds')
  await control.submit(Array.from({ length: 5_000 }, (_, i) => submitted(`many-${i}`, 'many')))
  await control.submit([submitted('one', 'few')])
  await until(async () => (await control.get('one')).waiting?.reason, 'concurrency')
  writeFileSync(pair.file('go'), '')
  expect((await control.ended('one')).status).toBe('success')
  expect(pair.lines('order').indexOf('few')).toBeLessThanOrEqual(1)
})

describe('a task that may not start yet', () => {
  test('waits for its delay after its dependencies, or for its time, and says so', async () => {
    await using control = await startControl({ env: OPEN })
    const time = new Date(Date.now() + 700).toISOString()
    await control.submit([
      shell('first', 'sleep 0.2'),
      noop('delayed', { depends_on: ['first'], not_before: 400 }),
      noop('timed', { not_before: time }),
      noop('past', { not_before: '2020-02-29T00:00:00+02:00' }),
      noop('now', { not_before: 0 }),
      { id: 'each', type: 'noop', for_each: [1, 2], not_before: 500 },
      noop('after', { depends_on: ['timed'] }),
    ])
    await until(async () => (await control.get('delayed')).waiting?.reason, 'delay')
    expect(await control.get('timed')).toMatchObject({
      ...{ status: 'pending', not_before: time },
      waiting: { reason: 'delay', until: time },
    })
    const first = await control.ended('first')
    const { waiting } = await control.get('delayed')
    if (waiting?.reason === 'delay') expect(ms(waiting.until)).toBe(ms(first.finished_at) + 400)
    const delayed = await control.ended('delayed')
    expect(ms(delayed.started_at)).toBeGreaterThanOrEqual(ms(first.finished_at) + 400)
    const timed = await control.ended('timed')
    expect(ms(timed.started_at)).toBeGreaterThanOrEqual(ms(time))
    expect(delayed).not.toHaveProperty('waiting')
    const each = await control.ended('each')
    expect(ms(each.started_at)).toBeGreaterThanOrEqual(ms(each.created_at) + 500)
    for (const id of ['past', 'now', 'after']) expect((await control.ended(id)).status).toBe('success')
    expect(ms((await control.get('past')).started_at)).toBeLessThan(ms(time))
  })

  test('is that of a graph with a time, too; a restart changes nothing; it can be cancelled and deleted', async () => {
    using dir = tempDir()
    const options = { env: OPEN, dataDir: join(dir.path, 'data') }
    const far = '2999-01-01T00:00:00Z'
    {
      await using control = await startControl(options)
      const tasks = [noop('a'), noop('b', { depends_on: ['a'] })]
      expect((await control.post({ tasks, not_before: 1_500 })).status).toBe(202)
      await control.submit([noop('never'), noop('gone'), noop('other')].map((task) => ({ ...task, not_before: far })))
      await control.submit([{ id: 'sure', type: 'approval', params: { message: 'yes?' }, not_before: far }])
      expect((await control.get('sure')).waiting).toEqual({ reason: 'delay', until: '2999-01-01T00:00:00.000Z' })
      await control.stop('SIGKILL')
    }
    await using control = await startControl(options)
    expect((await control.get('never')).waiting).toEqual({ reason: 'delay', until: '2999-01-01T00:00:00.000Z' })
    const a = await control.ended('a')
    expect(ms(a.started_at)).toBeGreaterThanOrEqual(ms(a.created_at) + 1_500)
    expect((await control.ended('b')).status).toBe('success')
    for (const id of ['never', 'sure']) {
      expect((await control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })).status).toBe(202)
      expect(await control.get(id)).toMatchObject({ status: 'cancelled' })
    }
    expect((await control.fetch('/tasks/gone', { method: 'DELETE' })).status).toBe(204)
    expect((await control.get('other')).status).toBe('pending')
  })
})

test('starts in the order of the priority when several delays end', async () => {
  using dir = tempDir()
  const [go, order] = [join(dir.path, 'go'), join(dir.path, 'order')]
  await using control = await startControl({ env: OPEN, flags: ['--max-concurrency', '1'] })
  const not_before = 300
  await control.submit([
    shell('holds', waitFor(go)),
    shell('low', `echo low >> ${order}`, { not_before, priority: -1 }),
    shell('middle', `echo middle >> ${order}`, { not_before }),
    shell('high', `echo high >> ${order}`, { not_before, priority: 1 }),
  ])
  for (const id of ['low', 'middle', 'high']) {
    await until(async () => (await control.get(id)).waiting?.reason, 'concurrency')
  }
  writeFileSync(go, '')
  for (const id of ['low', 'middle', 'high']) expect((await control.ended(id)).status).toBe('success')
  expect((await Bun.file(order).text()).trim().split('\n')).toEqual(['high', 'middle', 'low'])
})

const PRIORITY = 'integer from -100 to 100'
const NOT_BEFORE = 'integer of milliseconds from 0 to 31536000000, or time such as "2030-01-31T09:30:00Z"'

test('a value out of its range is refused, with the field and what it may be', async () => {
  await using control = await startControl()
  const wrongOfTask = [
    [{ priority: 101 }, `tasks[0].priority: expected ${PRIORITY}`],
    [{ priority: 0.5 }, `tasks[0].priority: expected ${PRIORITY}`],
    [{ not_before: -1 }, `tasks[0].not_before: expected ${NOT_BEFORE}`],
    [{ not_before: '10m' }, `tasks[0].not_before: expected ${NOT_BEFORE}`],
    [{ not_before: '2030-01-31' }, `tasks[0].not_before: expected ${NOT_BEFORE}`],
    [{ not_before: '2030-02-30T00:00:00Z' }, 'task a: not_before must be a time that exists, not 2030-02-30T00:00:00Z'],
    [{ prio: 1 }, 'did you mean "priority"'],
    [{ delay: 1 }, 'did you mean "not_before"'],
  ] as const
  const wrongOfGraph = [
    [{ priority: 101 }, `priority: expected ${PRIORITY}`],
    [{ not_before: '2030-02-30T00:00:00Z' }, `not_before: expected ${NOT_BEFORE}`],
  ] as const
  for (const [body, text] of [
    ...wrongOfTask.map(([field, text]) => [{ tasks: [noop('a', field)] }, text] as const),
    ...wrongOfGraph.map(([fields, text]) => [{ tasks: [noop('a')], ...fields }, text] as const),
  ]) {
    const response = await control.post(body)
    expect(response.status).toBe(400)
    expect(await response.text()).toContain(JSON.stringify(text).slice(1, -1))
  }
})
