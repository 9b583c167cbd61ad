/**
 * Resource limits of the runtime: wall time, CPU time, memory, processes.
 * Source: spec, ResourceLimits; contract 2 and 5, Runtime.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, SLEEP } from '../support/runtime-tasks.ts'
import { noProcessesOf } from '../support/task-processes.ts'

const MEBIBYTE = 1024 * 1024
const TIMEOUT = { code: 'timeout', message: 'task exceeded wall_time_ms' }

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--disable-cgroup'] })
})
afterAll(() => runtime.dispose())

describe('wall_time_ms', () => {
  test('is 300000 by default', async () => {
    expect((await runtime.run(command('/bin/true'))).execution_plan.resource_enforcement.wall_time_ms).toBe(300_000)
  })

  test('on expiry the task gets SIGTERM: failed, timeout, `task exceeded wall_time_ms`', async () => {
    const task = await runtime.run({ ...SLEEP, limits: { wall_time_ms: 150 } })
    expect(task).toMatchObject({ status: 'failed', error: TIMEOUT, exit_signal: 15 })
    expect(task).not.toHaveProperty('exit_code')
    expect(task.duration_ms).toBeGreaterThanOrEqual(150)
    expect(task.duration_ms).toBeLessThan(20_000)
    expect(await runtime.eventTypes(task.task_id)).toEqual([
      ...['submitted', 'accepted', 'planned', 'resource_reserved', 'started'],
      ...['timeout_triggered', 'resource_released', 'failed'],
    ])
  })

  test('does not count the time in the queue', async () => {
    await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    const first = await narrow.submit({ ...SLEEP, limits: { wall_time_ms: 2_000 } })
    const second = await narrow.script('echo ran', { limits: { wall_time_ms: 1_900 } })
    expect((await narrow.ended(first)).error).toMatchObject(TIMEOUT)
    expect(await narrow.ended(second)).toMatchObject({ status: 'success', stdout: 'ran\n' })
  })
})

describe('cpu_time_sec', () => {
  test('maps to RLIMIT_CPU: a task that uses more is failed, cpu_limit_exceeded', async () => {
    const task = await runtime.runScript('while :; do :; done', { limits: { cpu_time_sec: 1, wall_time_ms: 60_000 } })
    expect(task).toMatchObject({ status: 'failed', error: { code: 'cpu_limit_exceeded' } })
    expect([24, 9]).toContain(task.exit_signal!) // XCPU, or KILL where the hard limit was met
    expect(task.usage!.user_cpu_ms! + task.usage!.system_cpu_ms!).toBeGreaterThan(500)
    expect(task.execution_plan.resource_enforcement).toMatchObject({ cpu_time_sec: 1, cpu_time_enforced: true })
  })

  test('a task sees it, and none by default', async () => {
    expect((await runtime.runScript('ulimit -t', { limits: { cpu_time_sec: 7 } })).stdout).toBe('7\n')
    expect((await runtime.runScript('ulimit -t')).stdout).toBe('unlimited\n')
  })
})

describe('memory_bytes', () => {
  test('is RLIMIT_AS, and nothing where none was asked for', async () => {
    const task = await runtime.runScript('ulimit -v', { limits: { memory_bytes: 200 * MEBIBYTE } })
    expect(task.stdout).toBe('204800\n')
    expect(task.execution_plan).toMatchObject({
      degraded: false,
      resource_enforcement: { memory_bytes: 200 * MEBIBYTE, memory_enforced: true, cgroup_enforced: false },
    })
    expect((await runtime.runScript('ulimit -v')).stdout).toBe('unlimited\n')
  })
})

describe('pids_max', () => {
  test('without a cgroup is not enforced, and the plan says so', async () => {
    const task = await runtime.runScript('true', { limits: { pids_max: 5 } })
    expect(task.status).toBe('success')
    expect(task.execution_plan).toMatchObject({
      degraded: true,
      resource_enforcement: { pids_max: 5, pids_enforced: false, cgroup_enforced: false },
    })
    expect(task.reservation).toEqual({ task_slots: 1, pids: 5 })
  })

  test('with a cgroup (where the host has one) limits processes', async () => {
    await using host = await startRuntime()
    const { resources } = await host.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
    const task = await host.runScript('n=0; while [ $n -lt 20 ]; do sleep 600 & n=$((n + 1)); done; echo all', {
      limits: { pids_max: 8 },
    })
    expect(task.execution_plan.resource_enforcement.pids_enforced).toBe(resources.pids_limit)
    expect(task.execution_plan.degraded).toBe(!resources.pids_limit)
    expect(task.stdout).toBe(resources.pids_limit ? '' : 'all\n')
    expect(await noProcessesOf(task.artifacts.task_dir)).toEqual([])
  })
})
