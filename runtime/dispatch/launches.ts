/**
 * The launchers of this service's tasks: started, told to end their task, and read when they are done.
 *
 * Whatever a launcher did is in the directory of its task; what it says while it lives only makes us look.
 */
import { existsSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { TaskRequest } from '../../shared/runtime-request/validate.ts'
import type { CapabilitySet } from '../intake/capability-set.ts'
import type { TaskCgroups } from '../launcher/cgroup.ts'
import type { Asked, TaskError } from '../launcher/classification.ts'
import { explainFault } from '../launcher/faults.ts'
import type { Launched, LauncherEnd, LauncherHost } from '../launcher/launcher-host.ts'
import type { LaunchedProcess } from '../launcher/outcome.ts'
import { isLauncherAlive, readRecord, removeRecord, requestKill, type TaskRecord } from '../launcher/spawn.ts'
import {
  isWorkspaceOf,
  letNobodyPass,
  letPass,
  makeTaskDir,
  type TaskDir,
  taskDir,
  taskDirId,
} from '../store/task-dir.ts'
import type { LiveTask, TaskStore } from '../store/task-store.ts'
import type { Ending, StartedProcess } from './ending.ts'
import { forestall } from './forestall.ts'
import { endingOf, internal, launchFailed, lost, startedProcess } from './launch-ending.ts'
import { type LaunchSettings, launchPlan, taskEnvironment } from './launch-plan.ts'
import { endGroup } from './left-groups.ts'
import { lostCapability, planWithoutLostDefault } from './lost-capability.ts'
import type { RunningTask } from './running-task.ts'
import { shortageOf } from './shortage.ts'
import { endMarked, markOf } from './stragglers.ts'
import { needsPassage, taskDirContent, workspaceOwner } from './task-dir-content.ts'

export interface LaunchesOptions {
  readonly host: LauncherHost
  readonly settings: LaunchSettings
  /** Undefined where they are disabled. */
  readonly cgroups: TaskCgroups | undefined
  readonly capabilities: CapabilitySet
  /** Absolute. */
  readonly dataDir: string
  /** Tells our tasks from those of other services of this machine. */
  readonly serviceId: string
  readonly store: TaskStore
  readonly log: Log
}

/** What a launcher could not do before it had a place to write that down. */
export interface LauncherFault {
  readonly step: string
  readonly errno: number
}

/** All that a launch needs, or why there will be none. */
export type PreparedLaunch =
  | {
      /** What was asked of the task, as far as its ending needs it. */
      readonly asked: Asked
      readonly start: () => Launched
    }
  | { readonly error: TaskError }

interface Heard {
  readonly outcome: PromiseWithResolvers<void>
  readonly fault: PromiseWithResolvers<LauncherFault>
}

/** The exit code of a launcher that started no task. */
const NOT_STARTED = 125

/**
 * Why no launcher will ever be found where a task was: something else is in the place of its directory, or somebody else's.
 * What runs of it is found by its mark.
 */
const OUT_OF_REACH: readonly string[] = ['ENOTDIR', 'ELOOP', 'EACCES', 'EPERM']

/** Milliseconds that what a launcher said last may be behind its end. */
const LAST_WORDS_MS = 100

export class Launches {
  readonly #options: LaunchesOptions
  /** What was heard of the launchers that were started for us. */
  readonly #heard = new Map<string, Heard>()

  constructor(options: LaunchesOptions) {
    this.#options = options
  }

  /** A launcher says that it could not begin. */
  onFault(taskId: string, fault: LauncherFault): void {
    this.#heard.get(taskId)?.fault.resolve(fault)
  }

  /** A launcher says that the outcome is there. False for one that an earlier service had started. */
  onOutcome(taskId: string): boolean {
    const heard = this.#heard.get(taskId)
    heard?.outcome.resolve()
    return heard !== undefined
  }

  /** Runs the launcher of a task whose place is written down, and gives its ending. Never rejects. */
  async run(running: RunningTask, prepared: PreparedLaunch): Promise<Ending> {
    const { task } = running
    const heard: Heard = { outcome: Promise.withResolvers(), fault: Promise.withResolvers() }
    this.#heard.set(task.task_id, heard)
    try {
      const launched = launchOf(running, prepared)
      if ('error' in launched) return { status: 'failed', error: launched.error, finishedAt: Date.now() }
      // It says that the outcome is there before it syncs that and ends: what we commit now is as durable, and sooner.
      const end = (await Promise.race([launched.gone, heard.outcome.promise])) ?? {}
      const ending = await this.#endingAfter(running, end, heard)
      // The launcher holds the lock of the task until it is gone; a retry needs that lock.
      if (shortageOf(ending) !== undefined) await launched.gone
      return ending
    } finally {
      this.#heard.delete(task.task_id)
    }
  }

  async #endingAfter(running: RunningTask, { exitCode, error }: LauncherEnd, heard: Heard): Promise<Ending> {
    if (error !== undefined) return { status: 'failed', error, finishedAt: Date.now() }
    if (exitCode !== NOT_STARTED || this.hasBegun(running.task)) return await this.ending(running, exitCode)
    await this.#endWhatIsLeft(running.task)
    return await notBegun(heard)
  }

  /** For a task that has a place, while that is being written down. `given` is its request where it is at hand. Never throws. */
  prepare(task: LiveTask, given?: TaskRequest): PreparedLaunch {
    const { host, settings, cgroups, capabilities } = this.#options
    try {
      const request = given ?? this.#storedRequest(task)
      const dir = this.#dirOf(task)
      const accepted = JSON.parse(task.row.execution_plan) as ExecutionPlan
      const plan = planWithoutLostDefault(accepted, request.limits, capabilities)
      if (given === undefined) {
        const lost = lostCapability(plan, request.limits, capabilities)
        if (lost !== undefined)
          return {
            error: { code: 'sandbox_setup_failed', message: `${lost} (it was there when the task was accepted)` },
          }
        this.#remakeUnlessUsable(dir, request, plan)
      }
      const context = {
        ...{ dir, dirId: taskDirId(dir.task_dir) },
        ...{ cgroup: cgroups?.forTask(task.task_id), mark: this.#markOf(task) },
      }
      const start = host.prepare(
        launchPlan(request, plan, context, settings),
        taskEnvironment(request, plan, context, settings),
      )
      return { asked: this.#askedOf(task, request), start }
    } catch (error) {
      return { error: cannotStart(error) }
    }
  }

  /** How a task ended whose launcher is done or gone. `exitCode` is its own, where that was seen. Never rejects. */
  async ending(running: RunningTask, exitCode?: number): Promise<Ending> {
    const { task, asked } = running
    try {
      const { outcome, process } = this.#recordOf(task)
      if (outcome !== undefined) {
        task.isSilent = outcome.stdout_bytes === 0 && outcome.stderr_bytes === 0
        return endingOf(outcome, asked ?? this.#askedOf(task, this.#storedRequest(task)))
      }
      await this.#endWhatIsLeft(task)
      const started = process === undefined ? undefined : startedProcess(process)
      return { ...lost(running, exitCode), started }
    } catch (error) {
      await this.#endWhatIsLeft(task)
      return internal(running, `cannot read how the task ended: ${messageOf(error)}`)
    }
  }

  /**
   * Ends a task that its launcher does not end, or not start, whatever keeps it from doing so; the launcher ends with it.
   * True when nothing of either is left, of which nobody else may tell. Rejects when it may still begin.
   */
  async endByForce(task: LiveTask): Promise<boolean> {
    const { log } = this.#options
    const { task_id, row } = task
    const isUnbegun = !this.hasBegun(task)
    const what = `a launcher did not ${isUnbegun ? 'start' : 'end'} its task in time: both are killed`
    if (isUnbegun) forestall(this.#dirOf(task).task_dir, row.kill_requested_at === null ? 'none' : 'kill', log)
    log.error(what, { task_id })
    await this.#endWhatIsLeft(task)
    return isUnbegun || this.isLive(task) === false
  }

  /** Removes what a launcher wrote down of a task that the machine refused to start. Its launcher is gone. */
  forgetRefusal(task: LiveTask): void {
    removeRecord(this.#dirOf(task).task_dir)
  }

  /** A task that has ended: other users are let through to its workspace no more, if they were. Never throws. */
  close(task: LiveTask): void {
    const plan = task.row.execution_plan
    if (!plan.includes('"mount":false')) return // most tasks: their plan is not read for it
    if (!needsPassage(JSON.parse(plan) as ExecutionPlan, this.#options.settings.sandbox.user?.uid)) return
    try {
      letNobodyPass(this.#dirOf(task))
    } catch (error) {
      const { task_id } = task
      this.#options.log.warn('cannot close the directory of a task', { task_id, cause: messageOf(error) })
    }
  }

  /** A safety net, for launchers of whose end nobody tells. */
  lookAround(): void {
    this.#options.host.lookAround()
  }

  /** False when there is no launcher any more, or not yet. Throws when it cannot be found out who it is. */
  sendKill(task: LiveTask): boolean {
    const { launcher_pid, pid } = task.row
    const known = launcher_pid === null || pid === null ? undefined : { launcher_pid, pid }
    return requestKill(this.#dirOf(task).task_dir, known)
  }

  /** Whether the launcher of a task is at work; undefined where that cannot be asked now. Never throws. */
  isLive(task: LiveTask): boolean | undefined {
    try {
      return isLauncherAlive(this.#dirOf(task).task_dir)
    } catch (error) {
      return OUT_OF_REACH.includes(systemCodeOf(error) ?? '') ? false : undefined
    }
  }

  /** The process of a task that has not ended, where it runs the task's program for all we can see. */
  startedProcess(task: LiveTask): StartedProcess | undefined {
    try {
      const { process, outcome } = this.#recordOf(task)
      if (process === undefined || outcome !== undefined || isBeforeProgram(process)) return undefined
      return startedProcess(process)
    } catch {
      return undefined
    }
  }

  /** Whether a launcher has written down how the task ended, and has let go of it: a task could have written that, too. */
  isThrough(task: LiveTask): boolean {
    try {
      // Without an outcome the lock is not touched: a launcher that is about to begin needs it.
      const hasOutcome = () => this.#recordOf(task).outcome !== undefined
      return hasOutcome() && this.isLive(task) === false && hasOutcome()
    } catch {
      return false
    }
  }

  /** Whether the launcher of a task came as far as making a process, or an outcome without one. */
  hasBegun(task: LiveTask): boolean {
    if (task.row.started_at !== null) return true // whatever has become of its record
    try {
      const { process, outcome } = this.#recordOf(task)
      return process !== undefined || outcome !== undefined
    } catch {
      return true // what cannot be read is there: only a task puts anything else where its record should be
    }
  }

  #dirOf(task: LiveTask): TaskDir {
    return taskDir(this.#options.dataDir, task.task_id)
  }

  #markOf(task: LiveTask): string {
    return markOf(this.#options.serviceId, task.task_id)
  }

  #storedRequest(task: LiveTask): TaskRequest {
    return JSON.parse(this.#options.store.requestOf(task.task_id)) as TaskRequest
  }

  #recordOf(task: LiveTask): TaskRecord {
    return readRecord(this.#dirOf(task).task_dir)
  }

  #askedOf(task: LiveTask, { execution, limits, sandbox }: TaskRequest): Asked {
    return {
      ...limits,
      program: execution.kind === 'command' ? execution.program : (execution.interpreter[0] ?? ''),
      workdir: join(this.#dirOf(task).workspace, sandbox.workspace_subdir ?? ''),
      max_output_bytes: this.#options.settings.maxOutputBytes,
    }
  }

  /**
   * A task that waited is launched from the database: its directory may have gone, or never reached the disk. The service
   * may have been restarted with another user of sandboxes, who can do nothing with the workspace of the earlier one.
   */
  #remakeUnlessUsable(dir: TaskDir, request: TaskRequest, plan: ExecutionPlan): void {
    const { dataDir, settings } = this.#options
    const uid = settings.sandbox.user?.uid
    if (existsSync(dir.request_path) && isWorkspaceOf(dir, workspaceOwner(plan, uid))) return
    makeTaskDir(dir, taskDirContent(request, JSON.stringify(request), plan, uid))
    if (needsPassage(plan, uid)) letPass(dataDir, dir)
  }

  /** Its launcher was killed, and could not do it. Never rejects. */
  async #endWhatIsLeft(task: LiveTask): Promise<void> {
    const { cgroups, log } = this.#options
    const { task_id } = task
    if (cgroups !== undefined) await endGroup(cgroups, task_id, log)
    const isEnded = await endMarked(this.#markOf(task))
    // Its launcher, which has the mark, may have made the group after that was ended.
    const isGroupEnded = cgroups === undefined || (await endGroup(cgroups, task_id, log))
    if (isEnded && isGroupEnded) return
    log.error('processes of a task whose launcher is gone cannot be killed', { task_id })
  }
}

/** Whether the process of a task is a copy of its launcher still: a file system may be slow to give the program. */
function isBeforeProgram({ launcher_pid, pid }: LaunchedProcess): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) === readlinkSync(`/proc/${launcher_pid}/exe`)
  } catch {
    return false // not to be seen by us, or ended
  }
}

function launchOf(running: RunningTask, prepared: PreparedLaunch): Launched {
  if ('error' in prepared) return prepared
  running.asked = prepared.asked
  running.launchedSince = performance.now()
  try {
    return prepared.start()
  } catch (error) {
    return { error: cannotStart(error) }
  }
}

const cannotStart = (cause: unknown): TaskError => ({
  code: 'launch_failed',
  message: `cannot start the launcher of the task: ${messageOf(cause)}`,
})

/** The disk was full, or the directory was gone: there is no outcome, and there was no process. */
async function notBegun({ fault }: Heard): Promise<Ending> {
  const found = await Promise.race([fault.promise, Bun.sleep(LAST_WORDS_MS)])
  if (found === undefined) return launchFailed('the launcher of the task could not begin (see launchers.log)')
  const { message, details } = explainFault(found.step, found.errno)
  return launchFailed(message, details)
}
