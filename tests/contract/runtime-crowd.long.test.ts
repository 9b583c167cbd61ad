/**
 * Many tasks at once, of tenants with and without quotas, that succeed, fail, time out and are killed: what the ledger
 * says must add up at every moment. Source: spec, Resources snapshot and Events; contract 2.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TaskListResponse, TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { ResourcesSnapshot } from '../../shared/contract/runtime-info.ts'
import { readMetrics, sampleValue } from '../support/metrics-text.ts'
import { startRuntime } from '../support/runtime.ts'
import { command, script } from '../support/runtime-tasks.ts'
import { noProcessesOf } from '../support/task-processes.ts'

const TASKS = 120
const MEBIBYTE = 1024 * 1024
const KINDS = ['finished', 'failed', 'timeout', 'launch', 'killed'] as const

/** The `i`-th task: its kind, tenant and size follow from `i`, so that a failure can be repeated. */
function nth(i: number) {
  const kind = KINDS[i % KINDS.length]!
  const body = {
    finished: script('exit 0'),
    failed: script('exit 3'),
    timeout: { ...command('/bin/sleep', '600'), limits: { wall_time_ms: 60 } },
    launch: command('/no/such/program'),
    killed: command('/bin/sleep', '600'),
  }[kind]
  const limits = {
    ...('limits' in body ? body.limits : {}),
    memory_bytes: (100 + (i % 7) * 50) * MEBIBYTE,
    pids_max: 10,
  }
  const tenant = [undefined, 'a', 'b'][i % 3]
  return { kind, body: { ...body, task_id: `t-${i}`, limits, control_context: tenant === undefined ? {} : { tenant } } }
}

const sum = (amounts: readonly (number | undefined)[]) =>
  amounts.reduce<number>((all, amount) => all + (amount ?? 0), 0)

function expectToAddUp({ capacity, reserved, available, active_reservations, tenants }: ResourcesSnapshot): void {
  for (const counter of ['task_slots', 'memory_bytes', 'pids'] as const) {
    const held = sum(active_reservations.map(({ reservation }) => reservation[counter]))
    expect([counter, reserved[counter]]).toEqual([counter, held])
    expect(held).toBeLessThanOrEqual(capacity[counter]!)
    expect(available[counter]).toBe(capacity[counter]! - held)
    expect(sum(tenants.map((view) => view.reserved[counter]))).toBeLessThanOrEqual(held)
    for (const { tenant, quota, reserved: taken, available: left } of tenants) {
      if (quota?.[counter] === undefined) continue
      expect([tenant, taken[counter]! <= quota[counter]!]).toEqual([tenant, true])
      expect(left?.[counter]).toBe(quota[counter]! - taken[counter]!)
    }
  }
  expect(new Set(active_reservations.map(({ task_id }) => task_id)).size).toBe(active_reservations.length)
}

test('a crowd of tasks: the ledger adds up at every moment, and all is given back', async () => {
  await using runtime = await startRuntime({
    flags: [
      ...['--max-running-tasks', '6', '--max-queued-tasks', '1000', '--capacity-pids', '55'],
      ...['--capacity-memory-bytes', String(1500 * MEBIBYTE), '--dispatch-poll-interval-ms', '60000'],
      ...['--tenant-quota', 'a=slots:2,pids:20', '--tenant-quota', `b=slots:3,memory:${700 * MEBIBYTE}`],
    ],
  })
  const tasks = Array.from({ length: TASKS }, (_, i) => nth(i))
  let isOver = false
  let looks = 0
  const looking = (async () => {
    while (!isOver) {
      expectToAddUp(await runtime.resources())
      looks++
    }
  })()
  const ended = await Promise.all(
    tasks.map(async ({ kind, body }) => {
      await runtime.submit(body)
      if (kind === 'killed') expect((await runtime.kill(body.task_id)).status).toBe(200)
      return { kind, task: await runtime.ended(body.task_id) }
    }),
  ).finally(() => {
    isOver = true
  })
  await looking
  expect(looks).toBeGreaterThan(3)

  const codes: Readonly<Record<string, string | undefined>> = {
    failed: 'exit_nonzero',
    timeout: 'timeout',
    launch: 'launch_failed',
    killed: 'cancelled',
  }
  for (const { kind, task } of ended) {
    expect([kind, task.error?.code as string | undefined]).toEqual([kind, codes[kind]])
    const types = await runtime.eventTypes(task.task_id)
    const times = (type: string) => types.filter((found) => found === type).length
    expect(times('resource_released')).toBe(times('resource_reserved'))
    expect(times('finished') + times('failed') + times('cancelled')).toBe(1)
    expect(['finished', 'failed', 'cancelled']).toContain(types.at(-1)!)
  }
  const last = await runtime.resources()
  expectToAddUp(last)
  expect(last).toMatchObject({ active_reservations: [], accepted_waiting_tasks: 0, available: last.capacity })
  expect(await noProcessesOf(join(runtime.dataDir, 'tasks'))).toEqual([])

  const { tasks: listed } = await runtime.json<TaskListResponse>('/api/v1/tasks?limit=1000')
  expect(listed.length).toBe(TASKS)
  const metrics = readMetrics(await (await runtime.fetch('/metrics')).text())
  for (const status of ['success', 'failed', 'cancelled'] as const) {
    const count = ended.filter(({ task }: { task: TaskStatusResponse }) => task.status === status).length
    expect([status, sampleValue(metrics, 'service_runtime_tasks_total', { status })]).toEqual([status, count])
  }
})

test('at whatever moment a kill, the wall time and the end of a task meet, its record and its events tell one story', async () => {
  await using runtime = await startRuntime({ flags: ['--max-running-tasks', '6', '--max-queued-tasks', '1000'] })
  const bodies = [
    { ...command('/bin/sleep', '0.05'), limits: { wall_time_ms: 50 } },
    command('/bin/sleep', '0.02'),
    command('/no/such/program'),
    { ...script('trap "" TERM; sleep 0.03'), limits: { wall_time_ms: 40 } },
    script('trap "exit 0" TERM; sleep 0.03'),
  ]
  const last = { success: 'finished', failed: 'failed', cancelled: 'cancelled' } as Readonly<Record<string, string>>
  const one = async (i: number) => {
    const id = await runtime.submit(bodies[i % bodies.length]!)
    if (i % 3 !== 0) {
      await Bun.sleep((i * 7) % 60) // the moment of the kill varies: before, during and after the life of the task
      expect((await runtime.kill(id)).status).toBe(200)
    }
    const task = await runtime.ended(id)
    const types = await runtime.eventTypes(id)
    const has = (type: string) => types.includes(type)
    expect(new Set(types).size).toBe(types.length)
    expect(types.at(-1)).toBe(last[task.status]!)
    expect({ ...storyOf(task), reserved: has('resource_reserved') }).toEqual({
      hasError: task.status !== 'success',
      isTimeout: has('timeout_triggered') && task.status === 'failed',
      wasStarted: has('started'),
      reserved: has('resource_released'),
    })
    if (task.status === 'success') expect(task.exit_code).toBe(0)
    if (task.status === 'cancelled') expect(types).toContain('kill_requested')
    expect(task.exit_code === undefined || task.exit_signal === undefined).toBe(true)
    return task.status
  }
  const statuses = new Set<string>()
  for (let round = 0; round < 10; round++) {
    const ends = await Promise.all(Array.from({ length: 25 }, (_, i) => one(round * 25 + i)))
    for (const status of ends) statuses.add(status)
  }
  expect([...statuses].toSorted()).toEqual(['cancelled', 'failed', 'success'])
  expect((await runtime.resources()).active_reservations).toEqual([])
})

const storyOf = (task: TaskStatusResponse) => ({
  hasError: task.error !== undefined,
  isTimeout: task.error?.code === 'timeout',
  wasStarted: task.started_at !== undefined,
})

test('while retention takes tasks away, every question is answered 200 or 404', async () => {
  await using runtime = await startRuntime({
    flags: ['--result-retention-secs', '1', '--gc-interval-ms', '10', '--max-running-tasks', '8'],
  })
  const ids: string[] = []
  let gone = 0
  const ask = async (id: string) => {
    for (const path of [
      '',
      '/events',
      '/logs?stream=stdout',
      '/logs?stream=stdout&follow=true',
      '?wait_ms=5',
      '/kill',
    ]) {
      const method = path === '/kill' ? 'POST' : 'GET'
      const response = await runtime.fetch(`/api/v1/tasks/${id}${path}`, { method })
      expect([path, [200, 404].includes(response.status)]).toEqual([path, true])
      await response.arrayBuffer()
      if (path === '' && response.status === 404) gone++
    }
  }
  for (let i = 0; gone < 60; i++) {
    ids.push(await runtime.script('echo x'))
    const some = [i, Math.floor(i / 2), Math.floor(i / 4)] // just made, older, and on its way out
    await Promise.all(some.map((pick) => ask(ids[pick]!)))
  }
})
