/**
 * A restart of serve neither loses nor kills running tasks: they run on, their outcome is collected, and a `recovered`
 * event is written. Against the built service, killed and started again on the same data directory.
 * Source: spec, Events; contract 2 (last item), 4 (one service per data directory) and 5, Runtime.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EventRecord, TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { endProcess } from '../support/stand-in-docker.ts'
import { endProcessesOf, gone, noProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

const SIGNALS = ['SIGKILL', 'SIGTERM'] as const

/** A data directory for services one after the other; whatever tasks are left at its end are ended. */
function place() {
  const dir = tempDir()
  const processes = endProcessesOf(dir.path)
  return {
    dataDir: join(dir.path, 'data'),
    file: (name: string) => join(dir.path, name),
    [Symbol.asyncDispose]: async () => {
      await processes[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

/** The running task, once it has printed its line. */
async function printed(runtime: Runtime, id: string): Promise<TaskStatusResponse> {
  await runtime.printed(id)
  return runtime.reached(id, 'running')
}

describe.each(SIGNALS)('over a %s of serve', (signal) => {
  const stopped = async (runtime: Runtime) => expect(await runtime.stop(signal)).toBe(signal === 'SIGTERM' ? 0 : signal)

  test('a running task runs on, as the same process, and its outcome is collected', async () => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime(at)
      const id = await runtime.script(`echo before; ${waitFor(at.file('go'))}; echo after; echo err >&2; exit 7`, {
        metadata: { a: 'b' },
      })
      before = await printed(runtime, id)
      await stopped(runtime)
    }
    expect(await isAlive(before.pid!)).toBe(true)
    await using runtime = await startRuntime(at)
    const between = await runtime.get(before.task_id)
    expect(between).toMatchObject({ ...pick(before), status: 'running', stdout: 'before\n' })
    expect((await runtime.resources()).active_reservations.map(({ task_id }) => task_id)).toEqual([before.task_id])
    await Bun.write(at.file('go'), '')
    expect(await runtime.ended(before.task_id)).toMatchObject({
      ...pick(before),
      ...{ status: 'failed', exit_code: 7, stdout: 'before\nafter\n', stderr: 'err\n', metadata: { a: 'b' } },
      error: { code: 'exit_nonzero', message: 'task exited with code 7' },
    })
    const types = await runtime.eventTypes(before.task_id)
    expect(types.filter((type) => type !== 'recovered')).toEqual([
      ...['submitted', 'accepted', 'planned', 'resource_reserved', 'started', 'resource_released', 'failed'],
    ])
    expect(types.filter((type) => type === 'recovered')).toEqual(['recovered'])
    expect(types.indexOf('recovered')).toBeGreaterThan(types.indexOf('resource_reserved'))
    expect(types.indexOf('recovered')).toBeLessThan(types.indexOf('resource_released'))
    const seqs = (await runtime.events(before.task_id)).map(({ seq }) => seq)
    expect(new Set(seqs).size).toBe(seqs.length)
    expect(seqs.toSorted((a, b) => a - b)).toEqual(seqs)
    expect((await runtime.resources()).active_reservations).toEqual([])
  })

  test.each([
    ['exit 0', { status: 'success', exit_code: 0 }],
    ['exit 9', { status: 'failed', exit_code: 9, error: { code: 'exit_nonzero', message: 'task exited with code 9' } }],
    ['kill -11 $$', { status: 'failed', exit_signal: 11, error: { code: 'exit_nonzero' } }],
  ])('a task that ends while serve is down has its true outcome: %s', async (ending, outcome) => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime(at)
      before = await printed(runtime, await runtime.script(`echo on; ${waitFor(at.file('go'))}; echo off; ${ending}`))
      await stopped(runtime)
    }
    await Bun.write(at.file('go'), '')
    await gone(before.shim_pid!)
    const startedAgainAt = Date.now()
    await using runtime = await startRuntime(at)
    const task = await runtime.ended(before.task_id)
    expect(task).toMatchObject({ ...pick(before), ...outcome, stdout: 'on\noff\n' })
    expect(Date.parse(task.finished_at!)).toBeLessThanOrEqual(startedAgainAt + 5)
    expect(task.usage).toMatchObject({ duration_ms: task.duration_ms! })
    expect(existsSync(task.artifacts.result_path)).toBe(true)
    const types = await runtime.eventTypes(before.task_id)
    expect(types).toContain('recovered')
    expect(types.filter((type) => type === 'resource_released')).toEqual(['resource_released'])
    expect(types.at(-1)).toBe(outcome.status === 'success' ? 'finished' : 'failed')
    expect((await runtime.resources()).reserved.task_slots).toBe(0)
  })

  test('tasks in the queue stay there, and run once, after it', async () => {
    await using at = place()
    const options = { ...at, flags: ['--max-running-tasks', '1'] }
    let ids: string[]
    {
      await using runtime = await startRuntime(options)
      const first = await runtime.script(`${waitFor(at.file('go'))}; echo first >> ${at.file('log')}`)
      await runtime.reached(first, 'running')
      const others = ['second', 'third', 'fourth'].map((name) => runtime.script(`echo ${name} >> ${at.file('log')}`))
      ids = [first, ...(await Promise.all(others))]
      await stopped(runtime)
    }
    await using runtime = await startRuntime(options)
    const [first, ...others] = ids as [string, ...string[]]
    expect((await runtime.get(first)).status).toBe('running')
    for (const id of others) expect((await runtime.get(id)).status).toBe('accepted')
    expect((await runtime.resources()).accepted_waiting_tasks).toBe(3)
    await Bun.write(at.file('go'), '')
    for (const id of ids) expect((await runtime.ended(id)).status).toBe('success')
    expect(readFileSync(at.file('log'), 'utf8').trim().split('\n').toSorted()).toEqual(
      ['first', 'second', 'third', 'fourth'].toSorted(),
    )
  })

  test('ended tasks stay as they were: status, events, logs and list', async () => {
    await using at = place()
    const record = async (runtime: Runtime, ids: readonly string[]) => ({
      tasks: await Promise.all(ids.map((id) => runtime.get(id))),
      events: await Promise.all(ids.map((id) => runtime.events(id))),
      logs: await Promise.all(
        ids.map(async (id) => (await runtime.fetch(`/api/v1/tasks/${id}/logs?stream=stdout`)).text()),
      ),
      list: await runtime.json('/api/v1/tasks?limit=100'),
    })
    const ids = ['ok', 'bad', 'late', 'missing']
    let before: Awaited<ReturnType<typeof record>>
    {
      await using runtime = await startRuntime(at)
      await runtime.run({ task_id: 'ok', ...script('echo ä'), limits: { stdout_max_bytes: 1 }, metadata: { k: 'v' } })
      await runtime.run({ task_id: 'bad', ...script('kill -9 $$') })
      await runtime.run({ task_id: 'late', ...SLEEP, limits: { wall_time_ms: 50 } })
      await runtime.run({ task_id: 'missing', ...command('/no/such') })
      before = await record(runtime, ids)
      await stopped(runtime)
    }
    await using runtime = await startRuntime(at)
    expect(await record(runtime, ids)).toEqual(before)
    const [status, code, message] = await refused(await runtime.post({ task_id: 'ok', ...SLEEP }))
    expect([status, code, message]).toEqual([409, 'conflict', 'task ok already exists'])
  })
})

/** What of a running task may not change by a restart. */
function pick({
  task_id,
  created_at,
  started_at,
  pid,
  shim_pid,
  pgid,
  reservation,
  execution_plan,
  artifacts,
}: TaskStatusResponse) {
  return {
    task_id,
    created_at,
    started_at: started_at!,
    pid: pid!,
    shim_pid: shim_pid!,
    pgid: pgid!,
    reservation: reservation!,
    execution_plan,
    artifacts,
  }
}

test('what was told of a task before a SIGKILL is still so after it: its status, its events with their seq', async () => {
  for (let round = 0; round < 8; round++) {
    await using at = place()
    let status: TaskStatusResponse
    let events: EventRecord[]
    {
      await using runtime = await startRuntime(at)
      const id = await runtime.submit(SLEEP)
      status = await runtime.reached(id, 'running')
      events = await runtime.events(id)
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime(at)
    expect(await runtime.get(status.task_id)).toMatchObject({ ...pick(status), status: 'running' })
    expect((await runtime.events(status.task_id)).slice(0, events.length)).toEqual(events)
  }
})

describe('wall time and grace go on while serve is down', () => {
  test('a task whose wall time runs out then has timed out', async () => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime(at)
      const id = await runtime.script('trap "" TERM; echo on; while :; do sleep 0.01; done', {
        limits: { wall_time_ms: 4_000 },
      })
      before = await printed(runtime, id)
      await runtime.stop('SIGKILL')
    }
    expect(await isAlive(before.pid!)).toBe(true)
    await gone(before.pid!)
    await using runtime = await startRuntime(at)
    expect(await runtime.ended(before.task_id)).toMatchObject({
      ...{ status: 'failed', exit_signal: 9, error: { code: 'timeout', message: 'task exceeded wall_time_ms' } },
    })
    const types = await runtime.eventTypes(before.task_id)
    expect(types).toContain('recovered')
    expect(types).toContain('timeout_triggered')
    expect(await noProcessesOf(before.artifacts.task_dir)).toEqual([])
  })

  test('a task that was killed then is cancelled, although it ignores TERM', async () => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime({ ...at, flags: ['--termination-grace-ms', '1500'] })
      before = await printed(runtime, await runtime.script('trap "" TERM; echo on; while :; do sleep 0.01; done'))
      expect((await runtime.kill(before.task_id)).status).toBe(200)
      await runtime.stop('SIGKILL')
    }
    await gone(before.pid!)
    await using runtime = await startRuntime(at)
    expect(await runtime.ended(before.task_id)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
    const types = await runtime.eventTypes(before.task_id)
    expect(types.filter((type) => type === 'kill_requested')).toEqual(['kill_requested'])
    expect(types.at(-1)).toBe('cancelled')
  })
})

describe('after a restart', () => {
  test('a kill reaches a task that runs on, with all that it started', async () => {
    await using at = place()
    let before: TaskStatusResponse
    let pids: number[]
    {
      await using runtime = await startRuntime(at)
      const id = await runtime.script(
        `sleep 600 & echo $!
         setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & echo end; wait`,
        { control_context: { owner: 'team-a' } },
      )
      await runtime.printed(id, (text) => text.split('\n').length === 4)
      before = await runtime.reached(id, 'running')
      pids = before.stdout.match(/\d+/g)!.map(Number)
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime(at)
    expect((await runtime.kill(before.task_id)).status).toBe(403)
    expect((await runtime.kill(before.task_id, { 'x-service-owner': 'team-a' })).status).toBe(200)
    expect(await runtime.ended(before.task_id)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
    expect(await Promise.all([before.pid!, ...pids].map(isAlive))).toEqual([false, false, false])
    expect(await noProcessesOf(before.artifacts.task_dir)).toEqual([])
  })

  test('places, memory and quotas that running tasks hold are still held', async () => {
    await using at = place()
    const flags = ['--max-running-tasks', '3', '--capacity-memory-bytes', '1000000000', '--tenant-quota', 'a=slots:1']
    const context = { control_context: { tenant: 'a' } }
    let before: unknown
    {
      await using runtime = await startRuntime({ ...at, flags })
      for (const task_id of ['of-a', 'large']) {
        const more = task_id === 'of-a' ? context : { limits: { memory_bytes: 700_000_000 } }
        await runtime.reached(await runtime.submit({ task_id, ...SLEEP, ...more }), 'running')
      }
      before = await runtime.resources()
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime({ ...at, flags })
    expect(await runtime.resources()).toEqual(before as never)
    const second = await runtime.submit({ ...script('echo a'), ...context })
    const large = await runtime.submit({ ...script('echo large'), limits: { memory_bytes: 700_000_000 } })
    expect((await runtime.runScript('echo fits')).stdout).toBe('fits\n')
    expect([(await runtime.get(second)).status, (await runtime.get(large)).status]).toEqual(['accepted', 'accepted'])
    await runtime.kill('of-a')
    expect((await runtime.ended(second)).stdout).toBe('a\n')
    await runtime.kill('large')
    expect((await runtime.ended(large)).stdout).toBe('large\n')
  })

  test('several restarts are as one', async () => {
    await using at = place()
    let id = ''
    for (let round = 0; round < 3; round++) {
      await using runtime = await startRuntime(at)
      if (round === 0) id = await runtime.script(`echo on; ${waitFor(at.file('go'))}; exit 5`)
      await printed(runtime, id)
      await runtime.stop(SIGNALS[round % 2]!)
    }
    await using runtime = await startRuntime(at)
    await Bun.write(at.file('go'), '')
    expect(await runtime.ended(id)).toMatchObject({ status: 'failed', exit_code: 5, stdout: 'on\n' })
    expect((await runtime.eventTypes(id)).filter((type) => type === 'started')).toEqual(['started'])
  })
})

describe('a task whose process is gone without an outcome', () => {
  test('ends failed/internal with message `task lost during runtime restart`', async () => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime(at)
      before = await printed(runtime, await runtime.script('echo on; exec sleep 600'))
      await runtime.stop('SIGKILL')
    }
    for (const pid of [before.shim_pid!, before.pid!]) await endProcess(pid)
    await using runtime = await startRuntime(at)
    const task = await runtime.ended(before.task_id)
    expect(task).toMatchObject({
      ...{ status: 'failed', stdout: 'on\n', reservation: { task_slots: 1 } },
      error: { code: 'internal', message: 'task lost during runtime restart' },
    })
    expect(task).not.toHaveProperty('exit_code')
    const types = await runtime.eventTypes(before.task_id)
    expect(types.slice(-2)).toEqual(['resource_released', 'failed'])
    expect((await runtime.resources()).reserved.task_slots).toBe(0)
    expect((await runtime.runScript('echo fine')).stdout).toBe('fine\n')
  })

  test('leaves none of its processes behind, although its launcher was killed', async () => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime(at)
      before = await printed(
        runtime,
        await runtime.script(
          'sleep 600 & setsid sh -c "trap \\"\\" TERM; while :; do sleep 0.05; done" & echo on; wait',
        ),
      )
      await runtime.stop('SIGKILL')
    }
    process.kill(before.shim_pid!, 'SIGKILL')
    await gone(before.shim_pid!)
    await using runtime = await startRuntime(at)
    expect(await runtime.ended(before.task_id)).toMatchObject({ status: 'failed', error: { code: 'internal' } })
    expect(await noProcessesOf(before.artifacts.task_dir)).toEqual([])
  })
})

test('SIGTERM of serve: exit 0 within a moment, although somebody waits and follows', async () => {
  await using at = place()
  let pid: number | undefined
  {
    await using runtime = await startRuntime(at)
    const id = await runtime.script('echo on; sleep 600')
    pid = (await printed(runtime, id)).pid
    const waiting = runtime.fetch(`/api/v1/tasks/${id}?wait_ms=60000`).catch(() => undefined)
    const following = runtime
      .fetch(`/api/v1/tasks/${id}/logs?stream=stdout&follow=true`)
      .then((response) => response.text())
      .catch(() => undefined)
    const start = performance.now()
    expect(await runtime.stop('SIGTERM')).toBe(0)
    expect(performance.now() - start).toBeLessThan(45_000) // the answer is held for 60 s
    await Promise.all([waiting, following])
    expect(await isAlive(pid!)).toBe(true)
  }
  await using _next = await startRuntime(at) // ends the task, and what belongs to it
})

describe('a start without the database of the tasks', () => {
  test('is refused, and harms neither them nor their files', async () => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime(at)
      before = await printed(runtime, await runtime.script('echo on; sleep 600'))
      await runtime.stop('SIGKILL')
    }
    const database = ['', '-wal', '-shm'].map((end) => join(at.dataDir, `runtime.db${end}`))
    for (const path of database) renameSync(path, `${path}.away`)
    for (const isEmpty of [false, true]) {
      if (isEmpty) writeFileSync(database[0]!, '')
      await expect(startRuntime(at)).rejects.toThrow(/no database that knows them .*restore .*runtime\.db/)
      expect(await isAlive(before.pid!)).toBe(true)
      expect(readFileSync(before.artifacts.stdout_path, 'utf8')).toBe('on\n')
    }
    for (const path of database) renameSync(`${path}.away`, path)
    await using runtime = await startRuntime(at)
    expect((await runtime.get(before.task_id)).status).toBe('running')
  })

  test('never removes a directory that a launcher is at work in', async () => {
    await using at = place()
    let before: TaskStatusResponse
    {
      await using runtime = await startRuntime(at)
      before = await printed(runtime, await runtime.script('echo on; sleep 600'))
      await runtime.stop('SIGKILL')
    }
    for (const end of ['', '-wal', '-shm']) rmSync(join(at.dataDir, `runtime.db${end}`), { force: true })
    const tasks = join(at.dataDir, 'tasks')
    renameSync(tasks, at.file('tasks'))
    {
      await using runtime = await startRuntime(at) // a database that knows no task
      await runtime.stop('SIGKILL')
    }
    rmSync(tasks, { recursive: true })
    renameSync(at.file('tasks'), tasks)
    await Bun.write(join(tasks, 'stray', 'request.json'), '')
    await using runtime = await startRuntime(at)
    await until(() => existsSync(join(tasks, 'stray')), false)
    await until(
      () => runtime.log,
      (log) => log.some(({ level, task_id }) => level === 'warn' && task_id === before.task_id),
    )
    expect(readFileSync(before.artifacts.stdout_path, 'utf8')).toBe('on\n')
  })
})

describe('one service per data directory', () => {
  test('a second one refuses to start and says why; the lock dies with its holder, not with its tasks', async () => {
    await using at = place()
    {
      await using runtime = await startRuntime(at)
      await printed(runtime, await runtime.script('echo on; sleep 600'))
      const second = startRuntime(at)
      await expect(second).rejects.toThrow(at.dataDir)
      await expect(startRuntime(at)).rejects.toThrow(/in use/)
      expect((await runtime.runScript('echo fine')).stdout).toBe('fine\n')
      await runtime.stop('SIGKILL')
    }
    await using next = await startRuntime(at) // although the task of the first one runs on
    expect((await next.fetch('/readyz')).status).toBe(200)
  })
})
