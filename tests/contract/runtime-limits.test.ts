/**
 * Resource limits of the runtime: wall time, CPU time, memory, processes.
 * Source: spec, ResourceLimits; contract 2 and 5, Runtime.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, SLEEP } from '../support/runtime-tasks.ts'
import { gone, noProcessesOf } from '../support/task-processes.ts'
import { isAlive } from '../support/until.ts'

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

  test('a task that handles SIGTERM may finish in the grace period, and has still timed out', async () => {
    await using patient = await startRuntime({ flags: ['--termination-grace-ms', '60000'] })
    const task = await patient.runScript('trap "echo tidy; exit 0" TERM; echo ready; while :; do sleep 0.01; done', {
      limits: { wall_time_ms: 3_000 },
    })
    expect(task).toMatchObject({ status: 'failed', error: TIMEOUT, stdout: 'ready\ntidy\n', exit_code: 0 })
  })

  test('SIGKILL comes after the grace period to one that ignores SIGTERM', async () => {
    await using patient = await startRuntime({ flags: ['--termination-grace-ms', '700'] })
    const task = await patient.runScript('trap "" TERM; while :; do sleep 0.01; done', {
      limits: { wall_time_ms: 3_000 },
    })
    expect(task).toMatchObject({ status: 'failed', error: TIMEOUT, exit_signal: 9 })
    expect(task.duration_ms).toBeGreaterThanOrEqual(3_700)
  })

  test('nothing of the task is left: children, those that ignore TERM, those in a session of their own', async () => {
    const id = await runtime.script(
      `sleep 600 & echo $!
       sh -c 'trap "" TERM; while :; do sleep 0.05; done' & echo $!
       setsid sh -c 'trap "" TERM; echo $$; (sleep 600 & echo $!); while :; do sleep 0.05; done' &
       setsid env -i /bin/sleep 600 & wait`,
      { limits: { wall_time_ms: 5_000 } },
    )
    const { stdout } = await runtime.printed(id, (text) => text.split('\n').length === 5)
    const pids = stdout.trim().split('\n').map(Number)
    expect(await Promise.all(pids.map(isAlive))).toEqual([true, true, true, true])
    const task = await runtime.ended(id)
    expect(task).toMatchObject({ status: 'failed', error: TIMEOUT })
    expect(await Promise.all(pids.map(isAlive))).toEqual([false, false, false, false])
    expect(await noProcessesOf(task.artifacts.task_dir)).toEqual([])
  })

  test('does not count the time in the queue', async () => {
    await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    const first = await narrow.submit({ ...SLEEP, limits: { wall_time_ms: 2_000 } })
    const second = await narrow.script('echo ran', { limits: { wall_time_ms: 1_900 } })
    expect((await narrow.ended(first)).error).toMatchObject(TIMEOUT)
    expect(await narrow.ended(second)).toMatchObject({ status: 'success', stdout: 'ran\n' })
  })
})

test('a task that ends leaves no process behind that it started', async () => {
  const task = await runtime.runScript('sleep 600 & echo $!; setsid sleep 600 & echo $!; exit 0')
  expect(task).toMatchObject({ status: 'success', exit_code: 0 })
  for (const pid of task.stdout.trim().split('\n').map(Number)) await gone(pid)
  expect(await noProcessesOf(task.artifacts.task_dir)).toEqual([])
})

describe('cpu_time_sec', () => {
  test('maps to RLIMIT_CPU: a task that uses more is failed, cpu_limit_exceeded', async () => {
    const task = await runtime.runScript('while :; do :; done', { limits: { cpu_time_sec: 1, wall_time_ms: 60_000 } })
    expect(task).toMatchObject({ status: 'failed', error: { code: 'cpu_limit_exceeded' } })
    expect([24, 9]).toContain(task.exit_signal!) // XCPU, or KILL where the hard limit was met
    expect(task.usage!.user_cpu_ms! + task.usage!.system_cpu_ms!).toBeGreaterThan(500)
    expect(task.execution_plan.resource_enforcement).toMatchObject({ cpu_time_sec: 1, cpu_time_enforced: true })
  })

  test('a task sees it', async () => {
    expect((await runtime.runScript('ulimit -t', { limits: { cpu_time_sec: 7 } })).stdout).toBe('7\n')
  })

  test('none by default, and time asleep does not count', async () => {
    expect((await runtime.runScript('ulimit -t')).stdout).toBe('unlimited\n')
    expect((await runtime.runScript('sleep 1.2', { limits: { cpu_time_sec: 1 } })).status).toBe('success')
  })

  test('one that keeps to it may fail for other reasons under its own name', async () => {
    const task = await runtime.runScript('exit 9', { limits: { cpu_time_sec: 1 } })
    expect(task.error).toMatchObject({ code: 'exit_nonzero', message: 'task exited with code 9' })
  })
})

describe('memory_bytes', () => {
  const take = (mebibytes: number) => command('/bin/dd', 'if=/dev/zero', 'of=/dev/null', `bs=${mebibytes}M`, 'count=1')

  test('is RLIMIT_AS: one that wants more ends as the program ends', async () => {
    const limits = { memory_bytes: 128 * MEBIBYTE }
    const task = await runtime.run({ ...take(256), limits })
    expect(task).toMatchObject({ status: 'failed', exit_code: 1, error: { code: 'exit_nonzero' } })
    expect(task.execution_plan).toMatchObject({
      degraded: false,
      resource_enforcement: { memory_bytes: 128 * MEBIBYTE, memory_enforced: true, cgroup_enforced: false },
    })
    expect((await runtime.run({ ...take(32), limits })).status).toBe('success')
    expect((await runtime.run(take(256))).status).toBe('success')
  })

  test('a task sees it, and no limit where none was asked for', async () => {
    const ask = async (memory_bytes: number) =>
      (await runtime.runScript('ulimit -v', { limits: { memory_bytes } })).stdout
    expect(await ask(200 * MEBIBYTE)).toBe('204800\n')
    expect((await runtime.runScript('ulimit -v')).stdout).toBe('unlimited\n')
  })
})

test('core dumps are off', async () => {
  expect((await runtime.runScript('ulimit -c')).stdout).toBe('0\n')
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
