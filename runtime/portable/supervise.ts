/**
 * Waits for a task, as supervise.c does: it runs until there is a first reason to end it, then gets TERM, then KILL,
 * then is given up. Here events come from the event loop, and all signals go to the process group of the task.
 */
import { fstatSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { killGroup } from '../../shared/process/process-group.ts'
import { KILL_SIGNAL } from '../launch/kill-signal.ts'
import type { Ending, LaunchedProcess, Outcome, Reason } from '../launch/outcome.ts'
import type { LaunchPlan } from '../launch/plan.ts'
import { type DiskUse, diskUse, freeBytes } from './disk-use.ts'
import { attempt } from './fault.ts'
import { underLimits } from './limits.ts'
import { type Logs, MaskedLogs } from './masked-logs.ts'
import { groupSize, launchedProcess } from './processes.ts'

export interface Supervised {
  readonly plan: LaunchPlan
  readonly program: string
  readonly env: Readonly<Record<string, string>>
  readonly logs: Logs
  /** Texts to mask in the output; none if the task writes to the logs itself. */
  readonly masks: readonly Buffer[]
  /** The descriptor of its standard input. Undefined for /dev/null. */
  readonly stdin: number | undefined
}

/** Callbacks before the task has ended. */
export interface Listeners {
  /** May throw, which ends the task. */
  readonly onStarted: (process: LaunchedProcess) => void
  /** The wall time is over, and the task was asked to end. */
  readonly onTimeout: () => void
}

/** Milliseconds between two checks of the log sizes and the clock. */
const LOOK_MS = 200

/** A count of the workspace takes at most this share of the time. */
const COUNT_SHARE = 20

const DEFAULT_GIVE_UP_MS = 30_000

const TERMINATING = ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP'] as const

/** Signals that would end the launcher by accident. */
const MEANINGLESS = ['SIGUSR1', 'SIGALRM', 'SIGPIPE', 'SIGTSTP', 'SIGXCPU', 'SIGIO'] as const

/** Runs the task to its end. Throws a `Fault` if the program cannot start. */
export async function supervise(given: Supervised, listeners: Listeners): Promise<Omit<Outcome, 'process'>> {
  return await new Supervision(given, listeners).run()
}

class Supervision {
  private phase: 'running' | 'asked' | 'killed' = 'running'
  private reason: Reason = 'none'
  private readonly startedAtMs = performance.now()
  private readonly startedEpochMs = Date.now()
  private readonly child: Subprocess
  private readonly maskedLogs: MaskedLogs | undefined
  private readonly giveUpMs: number
  /** End of the present phase, by the monotonic clock. */
  private deadlineMs: number
  private timer: Timer | undefined
  private nextCountMs = 0
  /** Free bytes of the file system at the last count, and by how much they may shrink until the next one is due. */
  private freeBytes = 0
  private toleratedBytes = 0
  /** Bytes that were in the workspace before the program started. */
  private readonly givenBytes: number
  private readonly gaveUp = Promise.withResolvers<void>()

  constructor(
    private readonly given: Supervised,
    private readonly listeners: Listeners,
  ) {
    const { plan, program, env, logs, masks, stdin = 'ignore' } = given
    this.giveUpMs = plan.give_up_ms ?? DEFAULT_GIVE_UP_MS
    this.deadlineMs = this.startedAtMs + plan.wall_time_ms
    this.givenBytes = this.workspaceUse().bytes
    for (const signal of MEANINGLESS) process.on(signal, () => {})
    process.on(KILL_SIGNAL, () => this.endBecause('kill'))
    for (const signal of TERMINATING) process.on(signal, () => this.endBecause('terminated'))
    const masked = masks.length === 0 ? undefined : attempt('masks', () => new MaskedLogs(masks, logs))
    const [stdout, stderr] = masked?.stdio ?? [logs.stdout, logs.stderr]
    this.maskedLogs = masked
    this.child = attempt('exec', () =>
      Bun.spawn(underLimits(plan, program, plan.command.slice(1)), {
        argv0: plan.command[0],
        cwd: plan.workdir,
        env,
        detached: true,
        stdio: [stdin, stdout, stderr],
      }),
    )
    masked?.follow(this.child)
  }

  async run(): Promise<Omit<Outcome, 'process'>> {
    const { child } = this
    try {
      this.listeners.onStarted(launchedProcess(child.pid, this.startedEpochMs))
    } catch (error) {
      await killGroup(child.pid, this.giveUpMs)
      throw error
    }
    this.awaitLook()
    await Promise.race([child.exited, this.gaveUp.promise])
    const ended = { finished_ms: Date.now(), duration_ms: Math.round(performance.now() - this.startedAtMs) }
    clearTimeout(this.timer)
    const leftovers = await this.endGroup()
    await this.maskedLogs?.finish()
    return {
      ...this.ending(),
      reason: this.reason,
      ...ended,
      ...this.usage(),
      ...this.logSizes(),
      ...this.writtenAtEnd(),
      ...leftovers,
    }
  }

  private get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** Checks the clock and the logs. */
  private look(): void {
    const nowMs = performance.now()
    if (nowMs >= this.deadlineMs) {
      if (this.phase === 'killed') {
        this.gaveUp.resolve()
        return
      }
      if (this.phase === 'asked') this.kill()
      else this.endBecause('wall_time')
    }
    const { stdout_bytes, stderr_bytes } = this.logSizes()
    if (this.phase !== 'killed' && Math.max(stdout_bytes, stderr_bytes) > this.given.plan.max_output_bytes) {
      this.endForWriting('output_limit')
    }
    if (this.phase !== 'killed' && this.hasFilledDisk(nowMs)) this.endForWriting('disk_limit')
    this.awaitLook()
  }

  private endForWriting(reason: Reason): void {
    if (this.phase === 'running' && !this.hasEnded) this.reason = reason
    this.kill()
  }

  private workspaceUse(): DiskUse {
    const { disk_bytes, task_dir } = this.given.plan
    return disk_bytes === undefined ? { bytes: 0, isTooDeep: false } : diskUse(join(task_dir, 'workspace'))
  }

  private hasFilledDisk(nowMs: number): boolean {
    const { disk_bytes, task_dir } = this.given.plan
    if (disk_bytes === undefined || !this.isTimeToCount(nowMs, disk_bytes)) return false
    this.freeBytes = freeBytes(task_dir)
    const { bytes, isTooDeep } = this.workspaceUse()
    const endMs = performance.now()
    this.nextCountMs = Math.max(this.nextCountMs, endMs) + (endMs - nowMs) * COUNT_SHARE
    return isTooDeep || bytes - this.givenBytes > disk_bytes
  }

  /** As is_time_to_count of disk.c. */
  private isTimeToCount(nowMs: number, diskBytes: number): boolean {
    const isDue = nowMs >= this.nextCountMs
    if (!isDue && this.freeBytes - freeBytes(this.given.plan.task_dir) <= this.toleratedBytes) return false
    this.toleratedBytes = isDue ? diskBytes : this.toleratedBytes * 2
    return true
  }

  private writtenAtEnd(): Pick<Outcome, 'disk_bytes' | 'disk_too_deep'> {
    if (this.given.plan.disk_bytes === undefined) return {}
    const { bytes, isTooDeep } = this.workspaceUse()
    const disk_bytes = Math.max(0, Math.round(bytes - this.givenBytes))
    return { disk_bytes, ...(isTooDeep && { disk_too_deep: 1 }) }
  }

  private awaitLook(): void {
    clearTimeout(this.timer)
    const leftMs = this.deadlineMs - performance.now()
    this.timer = setTimeout(() => this.look(), Math.max(0, Math.min(LOOK_MS, leftMs)))
  }

  /** The first reason counts, unless the task has ended before. */
  private endBecause(reason: Reason): void {
    if (this.phase !== 'running' || this.hasEnded) return
    this.reason = reason
    this.phase = 'asked'
    this.signal('SIGTERM')
    this.signal('SIGCONT') // a stopped process would not get TERM
    this.deadlineMs = performance.now() + this.given.plan.grace_ms
    this.awaitLook()
    if (reason === 'wall_time') this.listeners.onTimeout()
  }

  private kill(): void {
    this.phase = 'killed'
    this.signal('SIGKILL')
    this.deadlineMs = performance.now() + this.giveUpMs
  }

  private signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.child.pid, signal)
    } catch (error) {
      // EPERM: the remaining processes have another user. They are given up when the time is over.
      if (!['ESRCH', 'EPERM'].includes(systemCodeOf(error) ?? '')) throw error
    }
  }

  /** Kills what the main process left in its group. */
  private async endGroup(): Promise<Pick<Outcome, 'leftovers_killed' | 'leftovers_alive'>> {
    const left = groupSize(this.child.pid)
    if (left === 0) return { leftovers_killed: 0, leftovers_alive: 0 }
    const isGone = this.hasEnded && (await killGroup(this.child.pid, this.giveUpMs))
    const alive = isGone ? 0 : groupSize(this.child.pid)
    return { leftovers_killed: Math.max(0, left - alive), leftovers_alive: alive }
  }

  private ending(): { ending: Ending } {
    const { exitCode, signalCode } = this.child
    if (!this.hasEnded) return { ending: { how: 'abandoned' } }
    if (signalCode === null) return { ending: { how: 'exited', exit_code: exitCode ?? 0 } }
    // Real-time signals have numbers only.
    const signal = (constants.signals as Readonly<Record<string, number>>)[signalCode] ?? Number(signalCode)
    return { ending: { how: 'signaled', signal } }
  }

  private usage(): Pick<Outcome, 'user_cpu_ms' | 'system_cpu_ms' | 'max_rss_bytes'> {
    const usage = this.child.resourceUsage()
    if (usage === undefined) return {}
    const { cpuTime, maxRSS } = usage
    return {
      user_cpu_ms: Math.round(Number(cpuTime.user) / 1_000),
      system_cpu_ms: Math.round(Number(cpuTime.system) / 1_000),
      max_rss_bytes: maxRSS,
    }
  }

  private logSizes(): { stdout_bytes: number; stderr_bytes: number } {
    const { stdout, stderr } = this.given.logs
    return { stdout_bytes: fstatSync(stdout).size, stderr_bytes: fstatSync(stderr).size }
  }
}
