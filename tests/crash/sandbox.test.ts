/**
 * Kills the runtime service, and launchers, at random moments while tasks run in sandboxes, and looks for what is left.
 *
 * Each round starts the service on the directory of the round before and submits tasks that spread: children in sessions
 * of their own, of several generations, that ignore TERM. It ends with SIGKILL for the service, for a launcher or two, or
 * for both. After the last start all tasks end, and no process, mount, control group or namespace of theirs is left.
 */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parseStarted } from '../../runtime/launcher/outcome.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { hasEnded } from '../../shared/contract/runtime-status.ts'
import { allPids } from '../../shared/processes.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { type Random, randomNumbers, SEED } from '../support/random.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { noProcessesOf, processesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const ROUNDS = process.env.TASKMILL_NIGHTLY === undefined ? 20 : 300
const PATIENCE_MS = 10 * 60_000

const SCRIPTS = [
  'exit 0',
  'sleep 0.05; exit 3',
  'sleep 600',
  'setsid sleep 600 & sleep 600 & exit 0',
  '(setsid sh -c "sleep 600 & sleep 600" &); trap "" TERM; sleep 600',
  'for i in 1 2 3 4; do (while :; do /bin/true; done) & done; sleep 0.1',
]

const NAMESPACES = ['mnt', 'pid', 'uts', 'ipc', 'net', 'user']

const missing = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`

test.skipIf(missingSandbox !== undefined)(
  `nothing of sandboxes outlives their service or their launchers (${ROUNDS} kills, seed ${SEED})${missing}`,
  async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const groupsRoot = `taskmill-test-crash-${process.pid}`
    const options = { dataDir, flags: ['--termination-grace-ms', '100', '--cgroup-root', groupsRoot] }
    const random = randomNumbers(SEED)
    const seen = new Set<string>()
    for (let round = 0; round < ROUNDS; round++) {
      await using runtime = await startRuntime(options)
      await submitSome(runtime, random, round)
      await Bun.sleep(random(80))
      for (const name of namespacesOfTasks(dataDir)) seen.add(name)
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
    expect(seen.size, 'namespaces that tasks had').toBeGreaterThan(ROUNDS)
    await until(
      () => namespacesInUse().filter((name) => seen.has(name)),
      (left) => left.length === 0,
    )
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(dataDir)
    expect(groupsBelow(groupsRoot)).toEqual([])
  },
  PATIENCE_MS,
)

async function submitSome(runtime: Runtime, random: Random, round: number): Promise<void> {
  for (let n = 0; n <= random(6); n++) {
    const script = SCRIPTS[random(SCRIPTS.length)]!
    const namespaces = { net: random(4) === 0, cgroup: random(2) === 0 }
    await runtime.submit({
      task_id: `r${round}-${n}`,
      execution: { kind: 'script', script },
      limits: { wall_time_ms: 1_000, ...(missingCgroups === undefined && { pids_max: 64 }) },
      sandbox: { profile: 'linux_sandbox', namespaces },
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
    // Its number may be that of somebody else by now.
    if (processesOf(dataDir).includes(pid!)) process.kill(pid!, 'SIGKILL')
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

function namespacesOfTasks(dataDir: string): string[] {
  const own = new Set(namespacesOf(process.pid))
  return recordsOfRunning(dataDir)
    .flatMap(({ pid }) => namespacesOf(pid))
    .filter((name) => !own.has(name))
}

const namespacesInUse = (): string[] => allPids().flatMap(namespacesOf)

function namespacesOf(pid: number): string[] {
  return NAMESPACES.flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/ns/${name}`)]
    } catch {
      return [] // ended, or not ours to look at
    }
  })
}

/** Until each task has: those whose launchers are gone as lost, the others by the end of their wall time. */
async function endAll(runtime: Runtime): Promise<void> {
  await until(
    () => runtime.json<{ tasks: TaskStatusResponse[] }>('/api/v1/tasks?limit=1000'),
    ({ tasks }) => tasks.every(({ status }) => hasEnded(status)),
    { patienceMs: PATIENCE_MS },
  )
}

/** Groups of tasks, wherever in the hierarchies. */
const groupsBelow = (name: string): string[] =>
  [...new Bun.Glob(`**/${name}/*/`).scanSync({ cwd: '/sys/fs/cgroup', onlyFiles: false })].filter((path) =>
    path.includes('.r'),
  )

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
