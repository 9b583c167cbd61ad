/**
 * A machine that has no process to spare: a task that takes them all harms no other, and a launch that is refused for want of
 * processes is tried again. Source: docs/runtime.md, Crashes and full disks.
 * Method: limits on processes (RLIMIT_NPROC) of users that nobody else has, used up by a task or by the test.
 */
import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { allPids, bootId } from '../../shared/process/processes.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { asOrdinaryUser } from '../support/ordinary-user.ts'
import { FORK_BOMB, fillProcesses, withProcessLimit } from '../support/process-filler.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import type { ServiceOptions } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
const sandbox = { profile: 'linux_sandbox' } as const
const TRUE = command('/bin/true')
const QUEUED = ['submitted', 'accepted', 'planned', 'resource_reserved']
const ENDED = ['resource_released', 'finished']

/** Processes that the user of a bomb may have, should nothing else stop it. */
const BOMB_BOUND = 150

const bounded = (...flags: string[]): ServiceOptions => ({
  through: ['prlimit', `--nproc=${BOMB_BOUND}:${BOMB_BOUND}`, '--'],
  flags,
})

/** The user of a running task. */
const uidOf = async (runtime: Runtime, id: string) =>
  Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${(await runtime.get(id)).pid}/status`, 'utf8'))![1])

const hasGoneOff = (runtime: Runtime, id: string) => runtime.printed(id, (stdout) => stdout.includes('full\n'))

function processesOf(uid: number): number {
  const ofUser = (pid: number) => {
    try {
      return readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nUid:\t${uid}\t`)
    } catch {
      return false // it has ended
    }
  }
  return allPids().filter(ofUser).length
}

const lacking = missingSandbox ?? (isRoot ? undefined : 'only root can be limited as other users')
const why = (reason: string | undefined) => (reason === undefined ? '' : ` (skipped: ${reason})`)

describe.skipIf(lacking !== undefined)(`a fork bomb in a sandbox that asks for no limits${why(lacking)}`, () => {
  const cgroups = missingCgroups
  test.skipIf(cgroups !== undefined)(
    `has the processes of --sandbox-pids-max and no more, and other launches succeed${why(cgroups)}`,
    async () => {
      await using runtime = await startRuntime(bounded('--sandbox-pids-max', '64'))
      const bomb = await runtime.script(FORK_BOMB, { sandbox })
      const { execution_plan, reservation } = await hasGoneOff(runtime, bomb)
      expect(execution_plan).toMatchObject({
        ...{ degraded: false, capability_warnings: [] },
        resource_enforcement: { pids_max: 64, pids_enforced: true, cgroup_enforced: true },
      })
      expect(reservation).toEqual({ task_slots: 1 })
      // Its processes, and ours that are its init.
      const uid = await uidOf(runtime, bomb)
      expect(processesOf(uid)).toBeWithin(60, 67)
      for (let n = 0; n < 3; n++) {
        const { task_id, status } = await runtime.run({ ...TRUE, sandbox })
        expect([status, await runtime.eventTypes(task_id)]).toEqual(['success', [...QUEUED, 'started', ...ENDED]])
      }
      await runtime.kill(bomb)
      expect((await runtime.ended(bomb)).status).toBe('cancelled')
      expect(processesOf(uid)).toBe(0)
    },
  )

  test('1024 unless the service says otherwise, 0 is none', async () => {
    await using runtime = await startRuntime()
    await using unlimited = await startRuntime({ env: { SERVICE_RUNTIME_SANDBOX_PIDS_MAX: '0' } })
    const plans = await Promise.all([runtime, unlimited].map(async (service) => service.run({ ...TRUE, sandbox })))
    const [usual, none] = plans.map(({ execution_plan }) => execution_plan.resource_enforcement)
    expect(usual).toMatchObject({ pids_max: 1024, pids_enforced: missingCgroups === undefined })
    expect(none).not.toHaveProperty('pids_max')
    expect(none?.pids_enforced).toBe(false)
  })

  test('without that limit uses up the processes of its own user, and other launches succeed', async () => {
    await using runtime = await startRuntime(bounded('--sandbox-pids-max', '0'))
    const bomb = await runtime.script(FORK_BOMB, { sandbox })
    await hasGoneOff(runtime, bomb)
    const { task_id, status } = await runtime.run({ ...TRUE, sandbox })
    expect([status, await runtime.eventTypes(task_id)]).toEqual(['success', [...QUEUED, 'started', ...ENDED]])
    await runtime.kill(bomb)
    expect((await runtime.ended(bomb)).status).toBe('cancelled')
  })
})

/** Its launch was refused, and it waits. */
const isDelayed = (runtime: Runtime, id: string) =>
  until(
    () => runtime.events(id),
    (events) => events.some(({ event_type }) => event_type === 'launch_delayed'),
  )

/**
 * Submits tasks until the launch of one is refused, and gives its id. A process that ends gives its place back, and a
 * launch may take that before the filler does.
 */
async function submitUntilDelayed(runtime: Runtime, task: object): Promise<string> {
  for (;;) {
    const id = await runtime.submit(task)
    const events = await until(
      () => runtime.eventTypes(id),
      (types) => ['launch_delayed', 'finished', 'failed'].some((type) => types.includes(type)),
    )
    if (events.includes('launch_delayed')) return id
  }
}

/** Runs tasks until the launch of one is refused, and gives its end. */
const runUntilRefused = (runtime: Runtime) =>
  until(
    () => runtime.run(TRUE),
    ({ error }) => error !== undefined,
  )

const whyUser = isRoot ? '' : ' (skipped: only root can become another user)'
const whySandbox = why(missingSandbox)

describe.skipIf(!isRoot)(`a launch that is refused for want of processes${whyUser}`, () => {
  const start = async (options: ServiceOptions = {}) => {
    const { through = [], ...user } = await asOrdinaryUser()
    return await startRuntime({ ...user, ...options, through: [...withProcessLimit(), ...through] })
  }
  const idle = async () => {}

  /** A thread that Bun makes later takes the process that is spared, or is refused, and Bun aborts. */
  const noThreadsLater = { BUN_JSC_useConcurrentJIT: '0', BUN_JSC_useConcurrentGC: '0' }

  /** Which process cannot be made depends on what runs before there are no processes left, and on one that is spared. */
  const withLauncher = async (runtime: Runtime) => void (await runtime.run(TRUE))
  const withForkServer = async (runtime: Runtime) =>
    void (await runtime.printed(await runtime.script('echo; sleep 600')))

  const one = { isOneSpared: true }
  const all = { isReserveTaken: true }
  const isSandboxThere = missingSandbox === undefined
  describe.each([
    ['the process that starts launchers', {}, idle, all, /^spawn$/, true],
    ['its launcher', {}, withForkServer, {}, /^fork$/, true],
    ['its process', {}, withForkServer, one, /^fork$/, true],
    // With a process that has just ended there is room for the first, and none for the second.
    ['a process of its sandbox', { sandbox }, withForkServer, one, /^(namespaces|init)$/, isSandboxThere],
  ] as const)('%s', (_, more, prelude, filling, step, isPossible) => {
    test.skipIf(!isPossible)(`is tried again, and told${isPossible ? '' : whySandbox}`, async () => {
      await using runtime = await start({ env: noThreadsLater })
      await prelude(runtime)
      await using filler = await fillProcesses(filling)
      const id = await submitUntilDelayed(runtime, { ...command('/bin/echo', 'once'), ...more })
      const { data, message } = (await isDelayed(runtime, id)).at(-1)!
      expect(data).toMatchObject({ step: expect.stringMatching(step), errno: 'EAGAIN', retry_ms: 60_000 })
      expect(message).toMatch(/^cannot start the task: .*; the launch is tried again for up to 60000 ms$/)
      expect(await runtime.get(id)).toMatchObject({ status: 'accepted', reservation: { task_slots: 1 } })
      expect((await runtime.resources()).active_reservations.map(({ task_id }) => task_id)).toContain(id)
      await filler.stop()
      expect(await runtime.ended(id)).toMatchObject({ status: 'success', stdout: 'once\n' })
      expect(await runtime.eventTypes(id)).toEqual([...QUEUED, 'launch_delayed', 'started', ...ENDED])
      expect((await runtime.resources()).active_reservations.map(({ task_id }) => task_id)).not.toContain(id)
    })
  })

  test('is no harm to the service, which keeps the last processes for itself', async () => {
    await using runtime = await start({ flags: ['--launch-retry-ms', '0'] })
    const bomb = await runtime.script(FORK_BOMB)
    await hasGoneOff(runtime, bomb)
    const refused = await runUntilRefused(runtime)
    // So much work that Bun compiles and collects, with threads of its own.
    for (let n = 0; n < 2_000; n++) expect(await runtime.get(refused.task_id)).toMatchObject({ status: 'failed' })
    expect((await runtime.fetch('/readyz')).status).toBe(200)
    expect((await runtime.kill(bomb)).status).toBe(200)
    expect(await runtime.ended(bomb)).toMatchObject({ status: 'cancelled' })
    expect(await runtime.run(TRUE)).toMatchObject({ status: 'success' })
  })

  test('is not tried again for longer than --launch-retry-ms', async () => {
    await using runtime = await start({ flags: ['--launch-retry-ms', '500'] })
    await withLauncher(runtime)
    await using _filler = await fillProcesses()
    const { task_id, error } = await runUntilRefused(runtime)
    expect(error).toMatchObject({ code: 'launch_failed', details: { step: 'fork', errno: 'EAGAIN' } })
    expect(error?.message).toMatch(/; it was tried [2-9] times in \d+ ms \(--launch-retry-ms\)$/)
    expect(await runtime.eventTypes(task_id)).toEqual([...QUEUED, 'launch_delayed', 'resource_released', 'failed'])
  })

  test('is not tried again with --launch-retry-ms 0', async () => {
    await using runtime = await start({ flags: ['--launch-retry-ms', '0'] })
    await withLauncher(runtime)
    await using _filler = await fillProcesses()
    const { task_id, error } = await runUntilRefused(runtime)
    expect(error).toMatchObject({ code: 'launch_failed', details: { step: 'fork', errno: 'EAGAIN' } })
    expect(await runtime.eventTypes(task_id)).toEqual([...QUEUED, 'resource_released', 'failed'])
  })

  test('a kill ends the task while it waits, and its wall time does', async () => {
    await using runtime = await start()
    await withLauncher(runtime)
    await using _filler = await fillProcesses()
    const killed = await submitUntilDelayed(runtime, TRUE)
    const late = await submitUntilDelayed(runtime, { ...TRUE, limits: { wall_time_ms: 900 } })
    expect((await runtime.kill(killed)).status).toBe(200)
    expect(await runtime.ended(killed)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
    const end = ['resource_released', 'cancelled']
    expect(await runtime.eventTypes(killed)).toEqual([...QUEUED, 'launch_delayed', 'kill_requested', ...end])
    expect(await runtime.ended(late)).toMatchObject({
      ...{ status: 'failed', error: { code: 'timeout', message: 'task exceeded wall_time_ms' } },
      execution_plan: { degraded: false },
    })
    expect(await runtime.eventTypes(late)).toEqual([
      ...[...QUEUED, 'launch_delayed', 'timeout_triggered', 'resource_released', 'failed'],
    ])
    expect((await runtime.resources()).active_reservations).toEqual([])
  })

  test.each(['SIGKILL', 'SIGTERM'] as const)('is tried again by the next service: %s', async (signal) => {
    using data = tempDir()
    const { ownerUid } = await asOrdinaryUser()
    Bun.spawnSync(['chown', String(ownerUid), data.path])
    const dataDir = join(data.path, 'data')
    const first = await start({ dataDir })
    await withLauncher(first)
    let id: string
    {
      await using _filler = await fillProcesses()
      id = await submitUntilDelayed(first, command('/bin/echo', 'once'))
      await first.stop(signal)
      await first.dispose()
    }
    await using second = await start({ dataDir })
    expect(await second.ended(id)).toMatchObject({ status: 'success', stdout: 'once\n' })
    const again = ['resource_released', 'resource_reserved', 'started']
    expect(await second.eventTypes(id)).toEqual([...QUEUED, 'launch_delayed', ...again, ...ENDED])
  })
})

test('a refusal that the service did not live to see is tried again by the next one', async () => {
  using data = tempDir()
  const dataDir = join(data.path, 'data')
  const first = await startRuntime({ dataDir, flags: ['--max-running-tasks', '1'] })
  const blocker = await first.script('echo ready; until [ -e go ]; do sleep 0.02; done')
  const { artifacts } = await first.printed(blocker)
  const id = await first.submit(command('/bin/echo', 'once'))
  const { task_dir } = (await first.get(id)).artifacts
  await first.stop()
  await first.dispose()
  // As it stands when its place was written down and its launcher had no process.
  const db = new Database(join(dataDir, 'runtime.db'))
  db.run('update tasks set launch_boot_id = ?, reserved_at = ? where task_id = ?', [bootId(), Date.now(), id])
  db.close()
  const outcome = ['version=1', 'how=launch_failed', 'step=fork', `errno=${constants.errno.EAGAIN}`, 'reason=none']
  const numbers = [`finished_ms=${Date.now()}`, 'duration_ms=0', 'leftovers_killed=0', 'leftovers_alive=0', 'end=1']
  writeFileSync(join(task_dir, 'outcome'), `${[...outcome, ...numbers].join('\n')}\n`)
  await using second = await startRuntime({ dataDir })
  expect(await second.ended(id)).toMatchObject({ status: 'success', stdout: 'once\n' })
  const types = await second.eventTypes(id)
  expect(types.slice(-5)).toEqual(['recovered', 'launch_delayed', 'started', ...ENDED])
  writeFileSync(join(artifacts.task_dir, 'workspace/go'), '')
  await second.ended(blocker)
})
