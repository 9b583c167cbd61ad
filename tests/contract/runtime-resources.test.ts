/**
 * The ledger of the runtime: reservations, quotas of tenants, the queue, and what can never run.
 * Source: spec, Resources snapshot, Submit steps 3 and 4, Errors B; contract 0 (`--tenant-quota`), 2 and 5.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ResourcesSnapshot } from '../../shared/contract/runtime-info.ts'
import { startRuntime } from '../support/runtime.ts'
import { command, refused, SLEEP, script } from '../support/runtime-tasks.ts'

const MEBIBYTE = 1024 * 1024
const CAPACITY = [
  '--max-running-tasks',
  '3',
  '--capacity-memory-bytes',
  String(1024 * MEBIBYTE),
  '--capacity-pids',
  '100',
]
const FULL = { task_slots: 3, memory_bytes: 1024 * MEBIBYTE, pids: 100 }
const NONE = { task_slots: 0, memory_bytes: 0, pids: 0 }

const tenant = (name: string, more: object = {}) => ({ ...SLEEP, control_context: { tenant: name }, ...more })
const memory = (mebibytes: number) => ({ limits: { memory_bytes: mebibytes * MEBIBYTE } })

const reservedTasks = ({ active_reservations }: ResourcesSnapshot) => active_reservations.map(({ task_id }) => task_id)

describe('the resources snapshot', () => {
  test('has capacity, reserved and available, and no reservations at first', async () => {
    await using runtime = await startRuntime({ flags: [...CAPACITY, '--runtime-id', 'r-1'] })
    expect(await runtime.resources()).toEqual({
      runtime_id: 'r-1',
      ...{ capacity: FULL, reserved: NONE, available: FULL },
      ...{ active_reservations: [], accepted_waiting_tasks: 0, tenants: [] },
    })
  })

  test('lists unreleased reservations while tasks run, and releases them when they end', async () => {
    await using runtime = await startRuntime({ flags: CAPACITY })
    const id = await runtime.submit({ ...SLEEP, limits: { memory_bytes: 256 * MEBIBYTE, pids_max: 30 } })
    const task = await runtime.reached(id, 'running')
    const snapshot = await runtime.resources()
    const reservation = { task_slots: 1, memory_bytes: 256 * MEBIBYTE, pids: 30 }
    expect(snapshot).toMatchObject({
      capacity: FULL,
      reserved: reservation,
      available: { task_slots: 2, memory_bytes: 768 * MEBIBYTE, pids: 70 },
      active_reservations: [{ task_id: id, status: 'running', reservation }],
      accepted_waiting_tasks: 0,
    })
    expect(Object.keys(snapshot.active_reservations[0]!).toSorted()).toEqual([
      ...['reservation', 'reserved_at', 'status', 'task_id'],
    ])
    const { reserved_at } = snapshot.active_reservations[0]!
    expect([task.created_at, reserved_at].toSorted()).toEqual([task.created_at, reserved_at])
    await runtime.kill(id)
    const ended = await runtime.ended(id)
    expect(await runtime.resources()).toMatchObject({ reserved: NONE, available: FULL, active_reservations: [] })
    expect(ended.reservation).toEqual(reservation) // retained after the task ends, for audit
  })

  test.each([
    ['a success', command('/bin/true')],
    ['a failure', command('/bin/false')],
    ['a launch that failed', command('/no/such/program')],
    ['a timeout', { ...SLEEP, limits: { wall_time_ms: 50 } }],
  ])('nothing stays reserved after %s', async (_, body) => {
    await using runtime = await startRuntime({ flags: CAPACITY })
    await runtime.run({
      ...body,
      limits: { memory_bytes: 256 * MEBIBYTE, pids_max: 3, ...(body as { limits?: object }).limits },
    })
    expect(await runtime.resources()).toMatchObject({ reserved: NONE, available: FULL, active_reservations: [] })
  })

  test('accepted_waiting_tasks counts accepted tasks that hold no reservation', async () => {
    await using runtime = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    const ids = [await runtime.submit(SLEEP), await runtime.submit(SLEEP), await runtime.submit(SLEEP)]
    await runtime.reached(ids[0]!, 'running')
    const snapshot = await runtime.resources()
    expect(snapshot.accepted_waiting_tasks).toBe(2)
    expect(reservedTasks(snapshot)).toEqual([ids[0]!])
    expect(snapshot.available.task_slots).toBe(0)
  })
})

describe('tasks run up to --max-running-tasks at a time', () => {
  test('never more, and a place that is free is taken at once', async () => {
    await using runtime = await startRuntime({
      flags: ['--max-running-tasks', '2', '--dispatch-poll-interval-ms', '60000'],
    })
    const log = join(runtime.dataDir, 'log')
    const ids = await Promise.all(
      Array.from({ length: 12 }, (_, i) => runtime.script(`echo +${i} >> ${log}; sleep 0.02; echo -${i} >> ${log}`)),
    )
    for (const id of ids) expect((await runtime.ended(id)).status).toBe('success')
    const steps = readFileSync(log, 'utf8').trim().split('\n')
    let now = 0
    const counts = steps.map((step) => (now += step.startsWith('+') ? 1 : -1))
    expect([steps.length, Math.max(...counts), now]).toEqual([24, 2, 0])
  })

  test('a task that fits may overtake one that does not fit yet, which runs when there is room', async () => {
    await using runtime = await startRuntime({ flags: CAPACITY })
    const first = await runtime.submit({ ...SLEEP, ...memory(600) })
    await runtime.reached(first, 'running')
    const large = await runtime.submit({ ...script('echo large'), ...memory(600) })
    const small = await runtime.submit({ ...script('echo small'), ...memory(100) })
    expect((await runtime.ended(small)).stdout).toBe('small\n')
    expect(await runtime.get(large)).toMatchObject({ status: 'accepted', waiting_for: { resource: 'memory_bytes' } })
    expect(await runtime.json('/api/v1/tasks?status=accepted')).toMatchObject({
      tasks: [{ task_id: large, waiting_for: { resource: 'memory_bytes' } }],
    })
    expect(await runtime.get(first)).not.toHaveProperty('waiting_for')
    expect((await runtime.resources()).accepted_waiting_tasks).toBe(1)
    await runtime.kill(first)
    const ended = await runtime.ended(large)
    expect(ended.stdout).toBe('large\n')
    expect(ended).not.toHaveProperty('waiting_for')
  })
})

describe('insufficient_resources (400), and nothing is left behind', () => {
  test.each([
    ['memory_bytes beyond the capacity', { ...SLEEP, limits: { memory_bytes: 1024 * MEBIBYTE + 1 } }],
    ['pids_max beyond the capacity', { ...SLEEP, limits: { pids_max: 101 } }],
    ['memory_bytes beyond the quota of the tenant', tenant('small', memory(101))],
    ['pids_max beyond the quota of the tenant', tenant('small', { limits: { pids_max: 11 } })],
  ])('%s', async (_, body) => {
    await using runtime = await startRuntime({
      flags: [...CAPACITY, '--tenant-quota', `small=slots:2,memory:${100 * MEBIBYTE},pids:10`],
    })
    const before = await runtime.resources()
    const [status, code, message] = await refused(await runtime.post({ task_id: 'refused', ...body }))
    expect([status, code]).toEqual([400, 'insufficient_resources'])
    expect(message).not.toBe('')
    expect(await runtime.resources()).toEqual(before)
    expect((await runtime.fetch('/api/v1/tasks/refused')).status).toBe(404)
    expect((await runtime.fetch('/api/v1/tasks/refused/events')).status).toBe(404)
    const tasks = join(runtime.dataDir, 'tasks')
    expect(existsSync(tasks) ? readdirSync(tasks) : []).toEqual([])
  })
})

describe('tenant soft quotas', () => {
  const QUOTA = `a=slots:1,memory:${512 * MEBIBYTE}`

  test('tenants with a configured quota appear even at zero usage', async () => {
    await using runtime = await startRuntime({
      flags: [...CAPACITY, '--tenant-quota', `a=slots:2,memory:${MEBIBYTE},pids:5`, '--tenant-quota=b=slots:1'],
    })
    const { tenants } = await runtime.resources()
    const quota = { task_slots: 2, memory_bytes: MEBIBYTE, pids: 5 }
    expect(tenants.find((view) => view.tenant === 'a')).toEqual({
      tenant: 'a',
      quota,
      reserved: NONE,
      available: quota,
    })
    const b = tenants.find((view) => view.tenant === 'b')
    expect(b).toMatchObject({
      tenant: 'b',
      quota: { task_slots: 1 },
      reserved: { task_slots: 0 },
      available: { task_slots: 1 },
    })
    expect(tenants.length).toBe(2)
  })

  test('a tenant view counts what the tasks of the tenant have reserved', async () => {
    const flags = [...CAPACITY, '--tenant-quota', `a=slots:2,memory:${512 * MEBIBYTE},pids:5`]
    await using runtime = await startRuntime({ flags })
    const limits = { memory_bytes: 200 * MEBIBYTE, pids_max: 2 }
    await runtime.reached(await runtime.submit(tenant('a', { limits })), 'running')
    await runtime.reached(await runtime.submit(SLEEP), 'running')
    expect((await runtime.resources()).tenants).toEqual([
      {
        tenant: 'a',
        quota: { task_slots: 2, memory_bytes: 512 * MEBIBYTE, pids: 5 },
        reserved: { task_slots: 1, memory_bytes: 200 * MEBIBYTE, pids: 2 },
        available: { task_slots: 1, memory_bytes: 312 * MEBIBYTE, pids: 3 },
      },
    ])
  })

  test('a tenant without a quota has no quota and no available', async () => {
    await using runtime = await startRuntime({ flags: [...CAPACITY, '--tenant-quota', QUOTA] })
    await runtime.reached(await runtime.submit(tenant('free', memory(300))), 'running')
    const view = (await runtime.resources()).tenants.find(({ tenant: name }) => name === 'free')
    expect(view).toMatchObject({ tenant: 'free', reserved: { task_slots: 1, memory_bytes: 300 * MEBIBYTE } })
    expect(view).not.toHaveProperty('quota')
    expect(view).not.toHaveProperty('available')
  })

  test('a task beyond what its tenant has left waits; those of others do not', async () => {
    await using runtime = await startRuntime({ flags: [...CAPACITY, '--tenant-quota', QUOTA] })
    const first = await runtime.submit(tenant('a'))
    await runtime.reached(first, 'running')
    const second = await runtime.submit(tenant('a', script('echo second')))
    expect((await runtime.run(tenant('b', script('echo b')))).stdout).toBe('b\n')
    expect((await runtime.runScript('echo nobody')).stdout).toBe('nobody\n')
    expect((await runtime.get(second)).status).toBe('accepted')
    expect((await runtime.resources()).tenants.find(({ tenant: name }) => name === 'a')).toMatchObject({
      reserved: { task_slots: 1 },
      available: { task_slots: 0, memory_bytes: 512 * MEBIBYTE },
    })
    await runtime.kill(first)
    expect((await runtime.ended(second)).stdout).toBe('second\n')
  })
})

describe('the queue', () => {
  test('is full at --max-queued-tasks: 429 resource_limit_exceeded, nothing left behind, and free again later', async () => {
    await using runtime = await startRuntime({ flags: ['--max-running-tasks', '1', '--max-queued-tasks', '2'] })
    const running = await runtime.submit(SLEEP)
    await runtime.reached(running, 'running')
    const waiting = [await runtime.submit(SLEEP), await runtime.submit(SLEEP)]
    const before = [await runtime.resources(), readdirSync(join(runtime.dataDir, 'tasks')).toSorted()]
    const full = await runtime.post({ task_id: 'too-many', ...SLEEP })
    expect(full.headers.get('retry-after')).toBe('5')
    expect((await refused(full)).slice(0, 2)).toEqual([429, 'resource_limit_exceeded'])
    expect([await runtime.resources(), readdirSync(join(runtime.dataDir, 'tasks')).toSorted()]).toEqual(before)
    expect((await runtime.fetch('/api/v1/tasks/too-many')).status).toBe(404)

    await runtime.kill(waiting[0]!)
    await runtime.submit({ task_id: 'too-many', ...SLEEP })
    expect((await refused(await runtime.post(SLEEP)))[0]).toBe(429)
    await runtime.kill(running)
    await runtime.reached(waiting[1]!, 'running')
    expect((await runtime.post(SLEEP)).status).toBe(200)
  })

  test('takes no more than it may when many come at once', async () => {
    await using runtime = await startRuntime({ flags: ['--max-running-tasks', '1', '--max-queued-tasks', '5'] })
    await runtime.reached(await runtime.submit(SLEEP), 'running')
    const answers = await Promise.all(Array.from({ length: 20 }, () => runtime.post(SLEEP)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(5).fill(200), ...Array(15).fill(429)])
    expect((await runtime.resources()).accepted_waiting_tasks).toBe(5)
  })
})

test('the checks of submit come in order: validation, plan, capacity and quota, queue, and last the duplicate', async () => {
  await using runtime = await startRuntime({
    flags: [...CAPACITY.slice(2), '--max-running-tasks', '1', '--max-queued-tasks', '1', '--disable-linux-sandbox'],
  })
  await runtime.reached(await runtime.submit({ ...SLEEP, task_id: 'taken' }), 'running')
  const waiting = await runtime.submit(SLEEP)
  const strict = { sandbox: { profile: 'linux_sandbox' }, policy: { capability_mode: 'strict' } }
  const tooMuch = { limits: { memory_bytes: 2048 * MEBIBYTE } }
  const code = async (body: object) => (await refused(await runtime.post({ task_id: 'taken', ...SLEEP, ...body })))[1]
  expect(await code({ ...strict, ...tooMuch, metadata: { a: 1 } })).toBe('invalid_input')
  expect(await code({ ...strict, ...tooMuch })).toBe('unsupported_capability')
  expect(await code(tooMuch)).toBe('insufficient_resources')
  expect(await code({})).toBe('resource_limit_exceeded')
  await runtime.kill(waiting)
  expect(await code({})).toBe('conflict')
})
