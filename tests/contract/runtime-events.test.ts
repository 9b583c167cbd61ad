/** Events of runtime tasks: which, in what order, and what is in a record. Source: spec, Events; contract 2, Event order. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, closeSync, copyFileSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadLibc } from '../../shared/process/libc.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, SLEEP, script } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

const QUEUED = ['submitted', 'accepted', 'planned']
const STARTED = [...QUEUED, 'resource_reserved', 'started']

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--disable-cgroup', '--disable-linux-sandbox'] })
})
afterAll(() => runtime.dispose())

describe('a record', () => {
  test('has seq, task_id, event_type, timestamp, message and data; seq ascends; times do not go back', async () => {
    const task = await runtime.runScript('exit 3')
    const response = await runtime.fetch(`/api/v1/tasks/${task.task_id}/events`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('application/json')
    const events = await runtime.events(task.task_id)
    expect(Array.isArray(events)).toBe(true)
    for (const [i, event] of events.entries()) {
      expect(Object.keys(event).toSorted()).toEqual(['data', 'event_type', 'message', 'seq', 'task_id', 'timestamp'])
      expect(event.task_id).toBe(task.task_id)
      expect(event.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(event.message).toBeString()
      expect(Number.isInteger(event.seq)).toBe(true)
      const previous = events[i - 1]
      if (previous === undefined) continue
      expect(event.seq).toBeGreaterThan(previous.seq)
      expect(event.timestamp >= previous.timestamp).toBe(true)
    }
    expect(events[0]!.timestamp >= task.created_at).toBe(true)
  })
})

describe('the order', () => {
  test.each([
    ['a success', command('/bin/true'), [...STARTED, 'resource_released', 'finished']],
    ['a failure', script('exit 1'), [...STARTED, 'resource_released', 'failed']],
    [
      'a launch that failed',
      command('/no/such/program'),
      [...QUEUED, 'resource_reserved', 'resource_released', 'failed'],
    ],
  ])('of %s', async (_, body, types) => {
    expect(await runtime.eventTypes((await runtime.run(body)).task_id)).toEqual(types)
  })

  test('of wall-time expiry: timeout_triggered is there while the task has its grace, and once', async () => {
    const script = 'trap "" TERM; echo on; while :; do sleep 0.01; done'
    await using patient = await startRuntime({ flags: ['--termination-grace-ms', '60000'] })
    const id = await patient.script(script, { limits: { wall_time_ms: 3_000 } })
    const events = await until(
      () => patient.eventTypes(id),
      (types) => types.includes('timeout_triggered'),
    )
    expect(events).toEqual([...STARTED, 'timeout_triggered'])
    const { status, pid } = await patient.get(id)
    expect([status, await isAlive(pid!)]).toEqual(['running', true])
    await patient.kill(id)
    process.kill(pid!, 'SIGKILL')
    expect(await patient.ended(id)).toMatchObject({ finished_at: expect.any(String) })
    const after = [...STARTED, 'timeout_triggered', 'kill_requested', 'resource_released']
    expect((await patient.eventTypes(id)).slice(0, -1)).toEqual(after)
  })

  test('of a task that runs, and of its kill', async () => {
    const id = await runtime.submit(SLEEP)
    await runtime.reached(id, 'running')
    expect(await runtime.eventTypes(id)).toEqual(STARTED)
    await runtime.kill(id)
    await runtime.ended(id)
    expect(await runtime.eventTypes(id)).toEqual([...STARTED, 'kill_requested', 'resource_released', 'cancelled'])
  })

  test('of a task that waits: there with the answer to its submission; of its kill: kill_requested, cancelled', async () => {
    await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    await narrow.submit(SLEEP)
    const id = await narrow.submit(SLEEP)
    expect(await narrow.eventTypes(id)).toEqual(QUEUED)
    await narrow.kill(id)
    expect(await narrow.eventTypes(id)).toEqual([...QUEUED, 'kill_requested', 'cancelled'])
  })

  test('of a downgrade: degraded after planned', async () => {
    for (const more of [{ limits: { pids_max: 3 } }, { sandbox: { profile: 'linux_sandbox' } }]) {
      const { task_id } = await runtime.run({ ...script('true'), ...more })
      expect(await runtime.eventTypes(task_id)).toEqual([
        ...[...QUEUED, 'degraded', 'resource_reserved', 'started', 'resource_released', 'finished'],
      ])
    }
  })

  test('is whole once a wait has answered, for many tasks at once', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => runtime.script('exit 0')))
    for (const id of ids) {
      await runtime.ended(id)
      expect(await runtime.eventTypes(id)).toEqual([...STARTED, 'resource_released', 'finished'])
    }
  })
})

test('no `started` for a program that takes long to be found, and then cannot be run', async () => {
  using dir = tempDir()
  const program = join(dir.path, 'program')
  copyFileSync('/bin/true', program)
  chmodSync(program, 0o755)
  let id: string
  {
    using lease = heldBack(program)
    if (!lease.isHeld) return // a file system without leases
    id = await runtime.submit(command(program))
    const start = performance.now()
    await until(
      () => performance.now() - start,
      (ms) => ms > 3_000, // longer than it takes until the record of a launcher is believed
    )
    expect((await runtime.get(id)).status).toBe('accepted')
    writeFileSync(lease.fd, 'no program')
  }
  expect(await runtime.ended(id)).toMatchObject({ status: 'failed', error: { code: 'launch_failed' } })
  expect(await runtime.eventTypes(id)).not.toContain('started')
})

const F_SETLEASE = 1_024
const WRITE_LEASE = 1
const NO_LEASE = 2

/** Whoever opens the file waits until the end of the block: the kernel asks the holder of a lease first. */
function heldBack(path: string) {
  const libc = loadLibc({ fcntl: { args: ['i32', 'i32', 'i32'], returns: 'i32' } } as const)
  const ignore = () => {}
  process.on('SIGIO', ignore) // so it asks
  const fd = openSync(path, 'r+')
  return {
    fd,
    isHeld: libc?.fcntl(fd, F_SETLEASE, WRITE_LEASE) === 0,
    [Symbol.dispose]: () => {
      libc?.fcntl(fd, F_SETLEASE, NO_LEASE)
      closeSync(fd)
      process.off('SIGIO', ignore)
    },
  }
}
