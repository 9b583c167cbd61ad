/**
 * Kills the runtime service, and launchers, at random moments while tasks run in sandboxes, and looks for what is left.
 *
 * Each round starts the service on the directory of the round before and submits tasks that spread: children in sessions
 * of their own, of several generations, that ignore TERM; some have a network with rules. It ends with SIGKILL for the service, for a launcher or two, or
 * for both. After the last start all tasks end, no process, mount or control group of theirs is left, and nobody is in
 * their namespaces.
 */
import { expect, test } from 'bun:test'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parseStarted } from '../../runtime/launch/outcome.ts'
import { allCgroups, TEST_CGROUP_ROOT } from '../../scripts/left-cgroups.ts'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { hasEnded } from '../../shared/contract/runtime-status.ts'
import { allPids } from '../../shared/process/processes.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { limitOf, type Random, randomNumbers, roundsOf, SEED } from '../support/random.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { noProcessesOf, processesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const ROUNDS = roundsOf({ usual: 20, nightly: 300 })

const SCRIPTS = [
  'exit 0',
  'sleep 0.05; exit 3',
  'sleep 600',
  'setsid sleep 600 & sleep 600 & exit 0',
  '(setsid sh -c "sleep 600 & sleep 600" &); trap "" TERM; sleep 600',
  'for i in 1 2 3 4; do (while :; do /bin/true; done) & done; sleep 0.1',
]

const missing = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`

test.skipIf(missingSandbox !== undefined)(
  `nothing of sandboxes outlives their service or their launchers (${ROUNDS} kills, seed ${SEED})${missing}`,
  async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const groupsRoot = `${TEST_CGROUP_ROOT}-crash-${process.pid}`
    // More wait than by default may, on a machine that has other things to do.
    const flags = ['--termination-grace-ms', '100', '--cgroup-root', groupsRoot, '--max-queued-tasks', '10000']
    const options = { dataDir, flags }
    const random = randomNumbers(SEED)
    using seen = new SeenNamespaces()
    for (let round = 0; round < ROUNDS; round++) {
      await using runtime = await startRuntime(options)
      await submitSome(runtime, random, round)
      await Bun.sleep(random(80))
      for (const { pid } of recordsOfRunning(dataDir)) seen.add(pid)
      const aim = random(3)
      if (aim !== 0) killLaunchers(dataDir, random)
      if (aim === 1) await Bun.sleep(random(40)) // it sees to what they left
      runtime.process.kill('SIGKILL')
      await runtime.process.exited
    }

    await using runtime = await startRuntime(options)
    await endAll(runtime)
    await runtime.stop()
    await noProcessesOf(dataDir)
    expect(seen.size, 'sandboxes that were seen').toBeGreaterThan(0) // how many is a matter of how busy the machine is
    await until(() => seen.inUse().length, 0)
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(dataDir)
    expect(groupsBelow(groupsRoot)).toEqual([])
  },
  limitOf(ROUNDS),
)

async function submitSome(runtime: Runtime, random: Random, round: number): Promise<void> {
  for (let n = 0; n <= random(6); n++) {
    const script = SCRIPTS[random(SCRIPTS.length)]!
    const namespaces = { cgroup: random(2) === 0 }
    await runtime.submit({
      task_id: `r${round}-${n}`,
      execution: { kind: 'script', script },
      limits: { wall_time_ms: 1_000, ...(missingCgroups === undefined && { pids_max: 64 }) },
      // Rules, even none, have a process of the launcher beside the sandbox.
      sandbox: { profile: 'linux_sandbox', namespaces, network: random(3) === 0 ? {} : 'none' },
      policy: { capability_mode: 'strict' },
    })
    await Bun.sleep(random(20))
  }
}

/** One or two of those at work. */
function killLaunchers(dataDir: string, random: Random): void {
  const launchers = recordsOfRunning(dataDir).map(({ launcher_pid }) => launcher_pid)
  for (let n = 0; n <= random(2) && launchers.length > 0; n++) {
    const [pid] = launchers.splice(random(launchers.length), 1)
    // Its number may be that of somebody else by now, or nobody's.
    if (processesOf(dataDir).includes(pid!)) killIfThere(pid!)
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (systemCodeOf(error) !== 'ESRCH') throw error
  }
}

function recordsOfRunning(dataDir: string) {
  const tasks = join(dataDir, 'tasks')
  const directories = existsSync(tasks) ? readdirSync(tasks).map((id) => join(tasks, id)) : []
  return directories.flatMap((directory) => {
    const started = readOr(join(directory, 'started'))
    const record = existsSync(join(directory, 'outcome')) ? undefined : parseStarted(started)
    return record === undefined ? [] : [record]
  })
}

/** The pid namespaces of sandboxes. They are held open, so that no other gets their numbers; that keeps nothing in them. */
class SeenNamespaces implements Disposable {
  readonly #fds = new Map<string, number>()

  get size(): number {
    return this.#fds.size
  }

  /** That of a process, unless it has ended. */
  add(pid: number): void {
    const name = pidNamespaceOf(pid)
    if (name === undefined || name === pidNamespaceOf(process.pid) || this.#fds.has(name)) return
    try {
      const fd = openSync(`/proc/${pid}/ns/pid`, 'r')
      this.#fds.set(name, fd)
    } catch {
      // it has ended
    }
  }

  /** Processes that are in one of them. */
  inUse(): number[] {
    return allPids().filter((pid) => this.#fds.has(pidNamespaceOf(pid) ?? ''))
  }

  [Symbol.dispose](): void {
    for (const fd of this.#fds.values()) closeSync(fd)
  }
}

function pidNamespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined // ended, or not ours to look at
  }
}

/** Until each task has: those whose launchers are gone as lost, the others by the end of their wall time. */
async function endAll(runtime: Runtime): Promise<void> {
  await until(
    () => runtime.json<{ tasks: TaskStatusResponse[] }>('/api/v1/tasks?limit=1000'),
    ({ tasks }) => tasks.every(({ status }) => hasEnded(status)),
    { patienceMs: limitOf(ROUNDS) },
  )
}

/** Groups of tasks, in all hierarchies. Those of other tests may come and go meanwhile. */
const groupsBelow = (name: string): string[] =>
  allCgroups().filter((path) => path.includes(`/${name}/`) && path.includes('.r'))

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
