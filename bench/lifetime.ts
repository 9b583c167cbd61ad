/**
 * Owns everything that the bench starts or writes, and ends it.
 *
 * Each process leads its own process group, so killing the group ends its children. Tasks of a runtime service are not
 * in its group, because they outlive it. Their launchers are recognized by their home, a directory of the bench. The
 * `exit` hook ends all of them and removes their cgroups and the directory, whether the bench finishes, fails or is
 * interrupted. Only SIGKILL leaves something behind.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SpawnOptions, Subprocess } from 'bun'
import { allPids, isZombie, markedProcesses, processStat } from '../shared/process/processes.ts'

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Milliseconds in which launchers that were told to must end their tasks. */
const LAUNCHERS_END_MS = 10_000

/** Milliseconds in which killed processes end. One that is stuck in the system must not hold up the end for ever. */
const KILLED_END_MS = 10_000

/** Milliseconds between two looks at whether something has ended. */
const LOOK_MS = 10

type Spawned = SpawnOptions.SpawnOptions<'ignore', 'ignore' | number, 'inherit' | 'ignore' | number>

export class Lifetime {
  /**
   * A directory of this run. Make directories in it with synchronous calls: an asynchronous one that a thread still works on
   * at the end could make them again after their removal.
   */
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), 'taskmill-bench-')))
  readonly #children = new Set<Subprocess>()
  readonly #lastSteps: (() => void)[] = []

  constructor() {
    spreadDirectories(this.dir)
    process.on('exit', () => this.#end())
    for (const signal of END_SIGNALS) process.on(signal, () => process.exit(128 + constants.signals[signal]))
  }

  /** Starts a process and drops its standard output. */
  spawn(command: string[], options: Partial<Spawned> = {}): Subprocess {
    const child = Bun.spawn(command, {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'inherit',
      ...options,
      detached: true,
    })
    this.#children.add(child)
    child.exited.then(() => this.#children.delete(child))
    return child
  }

  /** Done when all processes have ended, before the directory goes. */
  atEnd(step: () => void): void {
    this.#lastSteps.push(step)
  }

  async kill(child: Subprocess): Promise<void> {
    killGroup(child.pid)
    await child.exited
  }

  #end(): void {
    const groups = new Set(Array.from(this.#children, ({ pid }) => pid))
    for (const pid of groups) killGroup(pid)
    untilEnded(groups)
    endTasks(`HOME=${this.dir}/`)
    for (const step of this.#lastSteps) step()
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 })
  }
}

/** A process and what belongs to its group. */
const killGroup = (pid: number): void => signal(-pid, 'SIGKILL')

/**
 * Waits until no process of the killed groups runs. Until the system has scheduled it once more, a killed process is
 * still there, and can finish the creation of a file in the directory that is about to be removed.
 */
function untilEnded(groups: ReadonlySet<number>): void {
  for (let waitedMs = 0; waitedMs < KILLED_END_MS; waitedMs += LOOK_MS) {
    const stats = allPids().map(processStat)
    if (!stats.some((stat) => stat !== undefined && groups.has(stat.group) && !isZombie(stat))) return
    Bun.sleepSync(LOOK_MS)
  }
}

/**
 * Has ext4 put each directory below `dir` away from other files. It does not use the place of a deleted file for
 * some minutes, and where many were deleted it searches: a new file took 240 µs instead of 8 beside a busy test suite.
 */
function spreadDirectories(dir: string): void {
  if (Bun.which('chattr') === null) return
  Bun.spawnSync(['chattr', '+T', dir], { stdout: 'ignore', stderr: 'ignore' })
}

/** A launcher that is told to end takes its task along and clears up; one that does not is killed, and its task with it. */
function endTasks(mark: string): void {
  for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
    const pids = markedProcesses(mark)
    if (pids.length === 0) return
    if (waitedMs === 0) for (const pid of pids) signal(pid, 'SIGTERM')
    if (waitedMs >= LAUNCHERS_END_MS) {
      for (const pid of pids) signal(pid, 'SIGKILL')
      return
    }
    Bun.sleepSync(LOOK_MS)
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {} // it has ended already
}
