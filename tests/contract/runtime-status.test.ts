/**
 * States and the status record of the runtime. Source: spec, TaskStatusResponse, States B; contract 2, States, Times,
 * usage; contract 5, Runtime and codes of ends by a signal.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { until } from '../support/until.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime()
})
afterAll(() => runtime.dispose())

/** Fields of the process `pid` in its `stat`, from the state on: state, ppid, pgrp, ... */
const statOf = (pid: number) =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')

const ENDED_ONLY = ['finished_at', 'duration_ms', 'exit_code', 'exit_signal', 'error', 'usage']
const STARTED_ONLY = ['started_at', 'pid', 'pgid', 'shim_pid']

describe('accepted', () => {
  test('is the initial state, and holds only what is true in it', async () => {
    await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    await narrow.submit(SLEEP)
    const before = Date.now()
    const id = await narrow.submit({ ...script('true'), metadata: { a: 'b' } })
    const task = await narrow.get(id)
    expect(task).toMatchObject({
      ...{ task_id: id, handle_id: id, status: 'accepted', metadata: { a: 'b' } },
      ...{ stdout: '', stderr: '', stdout_truncated: false, stderr_truncated: false },
    })
    expect(task.created_at).toMatch(TIME)
    expect(task.updated_at).toMatch(TIME)
    expect(Math.abs(Date.parse(task.created_at) - before)).toBeLessThan(30_000)
    expect(task.execution_plan).toBeDefined()
    expect(task.artifacts).toBeDefined()
    for (const field of [...ENDED_ONLY, ...STARTED_ONLY]) expect(task).not.toHaveProperty(field)
  })

  test('is not the status of a task that has printed something', async () => {
    for (let i = 0; i < 8; i++) {
      const id = await runtime.script('echo started; exec sleep 600')
      const { status, pid } = await runtime.printed(id)
      expect({ status, hasPid: pid !== undefined }).toEqual({ status: 'running', hasPid: true })
      await runtime.kill(id)
      await runtime.ended(id)
    }
  })
})

describe('running', () => {
  test('has the pids of the host: pid of the task, shim_pid of its launcher, pgid of its group', async () => {
    const id = await runtime.script('echo $$; exec sleep 600')
    await runtime.printed(id)
    const task = await until(
      () => runtime.get(id),
      ({ status }) => status !== 'accepted',
    )
    expect(task.status).toBe('running')
    expect(task.pid).toBe(Number(task.stdout))
    const [, ppid, pgrp] = statOf(task.pid!)
    expect(task.shim_pid).toBe(Number(ppid))
    expect(task.pgid).toBe(Number(pgrp))
    expect(Number(statOf(task.shim_pid!)[2])).not.toBe(task.pgid!)
    expect(task.started_at).toMatch(TIME)
    expect(task.started_at! >= task.created_at).toBe(true)
    for (const field of ENDED_ONLY) expect(task).not.toHaveProperty(field)
    expect(task.reservation).toEqual({ task_slots: 1 })
  })

  test('comes after accepted and before the end, and there is no way back', async () => {
    const go = join(runtime.dataDir, 'go')
    const id = await runtime.script(waitFor(go))
    const seen = new Set<string>()
    await until(
      async () => (await runtime.get(id)).status,
      (status) => seen.add(status) && status === 'running',
    )
    await Bun.write(go, '')
    await until(
      async () => (await runtime.get(id)).status,
      (status) => seen.add(status) && status !== 'running',
    )
    expect([...seen].filter((status) => status !== 'accepted')).toEqual(['running', 'success'])
  })
})

describe('success', () => {
  test('has all times, RFC 3339 in UTC with milliseconds, in order, and the duration between them', async () => {
    const task = await runtime.runScript('sleep 0.3')
    const { created_at, started_at, finished_at, updated_at, duration_ms } = task
    const times = [created_at, started_at!, finished_at!]
    for (const time of [...times, updated_at]) expect(time).toMatch(TIME)
    expect(times.toSorted()).toEqual(times)
    expect(updated_at >= finished_at!).toBe(true)
    expect(Number.isInteger(duration_ms)).toBe(true)
    expect(duration_ms).toBeGreaterThanOrEqual(300)
    expect(Math.abs(Date.parse(finished_at!) - Date.parse(started_at!) - duration_ms!)).toBeLessThanOrEqual(1_000)
  })

  test('keeps pids, reservation, plan, artifacts and metadata for audit', async () => {
    const task = await runtime.run({
      ...script('true'),
      limits: { memory_bytes: 1 << 28, pids_max: 9 },
      metadata: { graph: 'g', '': 'empty' },
    })
    for (const field of STARTED_ONLY) expect(task).toHaveProperty(field)
    expect(task.reservation).toEqual({ task_slots: 1, memory_bytes: 1 << 28, pids: 9 })
    expect(Object.keys(task.execution_plan).toSorted()).toEqual([
      ...['capability_mode', 'capability_warnings', 'degraded', 'effective_sandbox', 'fallback_reasons'],
      ...['requested_sandbox', 'resource_enforcement'],
    ])
    expect(task.metadata).toEqual({ graph: 'g', '': 'empty' })
  })

  test('echoes the metadata as it was submitted, whatever the keys', async () => {
    const text = '{"__proto__":"p","constructor":"c","0":"n","ü €":"😀\\n","":""}'
    const response = await runtime.post(`{"execution":{"kind":"script","script":"true"},"metadata":${text}}`)
    const { task_id } = (await response.json()) as { task_id: string }
    const body = await (await runtime.fetch(`/api/v1/tasks/${task_id}`)).text()
    const metadata = (JSON.parse(body) as { metadata: object }).metadata
    expect(new Map(Object.entries(metadata))).toEqual(new Map(Object.entries(JSON.parse(text) as object)))
    await runtime.ended(task_id)
  })

  test('tells what the task used, children included', async () => {
    const task = await runtime.runScript(
      'dd if=/dev/zero of=/dev/null bs=96M count=1; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done',
    )
    const { usage } = task
    expect(usage!.duration_ms).toBe(task.duration_ms!)
    expect(usage!.user_cpu_ms! + usage!.system_cpu_ms!).toBeGreaterThan(10)
    expect(usage!.max_rss_bytes).toBeGreaterThan(96 * 1024 * 1024)
    expect(usage!.max_rss_bytes).toBeLessThan(200 * 1024 * 1024)
    const small = await runtime.run(command('/bin/true'))
    expect(small.usage!.max_rss_bytes!).toBeLessThan(20 * 1024 * 1024)
  })
})

describe('failed', () => {
  test.each([1, 137, 255])('any other exit code is exit_nonzero: %d', async (code) => {
    const task = await runtime.runScript(`exit ${code}`)
    expect(task).toMatchObject({
      status: 'failed',
      exit_code: code,
      error: { code: 'exit_nonzero', message: `task exited with code ${code}` },
    })
    expect(task).not.toHaveProperty('exit_signal')
  })

  test.each([
    ['SIGKILL', 9],
    ['SIGABRT', 6],
  ])('death by a signal is exit_nonzero, with the number of the signal: %s', async (name, number) => {
    const task = await runtime.runScript(`kill -${number} $$`)
    expect(task).toMatchObject({ status: 'failed', exit_signal: number, error: { code: 'exit_nonzero' } })
    expect(task.error!.message).toEndWith(`terminated by signal ${name}`)
    expect(task.error).toHaveProperty('details.signal')
    expect(task).not.toHaveProperty('exit_code')
  })
})

describe('not_found', () => {
  test.each([
    ['GET', ''],
    ['POST', '/kill'],
    ['GET', '/events'],
    ['GET', '/logs'],
    ['GET', '?wait_ms=1'],
  ])('404 `task not found: <id>`: %s %s', async (method, suffix) => {
    const response = await runtime.fetch(`/api/v1/tasks/no-such.task${suffix}`, { method })
    expect(await refused(response)).toEqual([404, 'not_found', 'task not found: no-such.task'])
  })
})

describe('wait_ms answers at the end of the task or after N ms', () => {
  const wait = async (id: string, ms: number) => runtime.json<TaskStatusResponse>(`/api/v1/tasks/${id}?wait_ms=${ms}`)

  test('after N ms with the task as it is', async () => {
    const id = await runtime.submit(SLEEP)
    await runtime.reached(id, 'running')
    const start = performance.now()
    expect((await wait(id, 400)).status).toBe('running')
    expect(performance.now() - start).toBeGreaterThanOrEqual(395)
    expect((await wait(id, 0)).status).toBe('running')
  })

  test('at the end, for all who wait, and with its output', async () => {
    const go = join(runtime.dataDir, 'go-on')
    const id = await runtime.script(`${waitFor(go)}; echo last words; exit 3`)
    const waiting = Array.from({ length: 20 }, () => wait(id, 60_000))
    await runtime.reached(id, 'running')
    await Bun.write(go, '')
    for (const task of await Promise.all(waiting)) {
      expect(task).toMatchObject({ status: 'failed', exit_code: 3, stdout: 'last words\n' })
    }
  })

  test('at once, where the task has ended', async () => {
    const task = await runtime.runScript('echo x')
    expect(await wait(task.task_id, 60_000)).toEqual(task)
  })

  test('at the end of a task that is cancelled in the queue', async () => {
    await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    await narrow.submit(SLEEP)
    const id = await narrow.submit(SLEEP)
    const waiting = narrow.json<TaskStatusResponse>(`/api/v1/tasks/${id}?wait_ms=60000`)
    expect((await narrow.kill(id)).status).toBe(200)
    expect((await waiting).status).toBe('cancelled')
  })
})
