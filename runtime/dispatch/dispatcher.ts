/**
 * From accepted to ended: which task starts when, and what becomes of it.
 *
 * Nothing here polls. A place that becomes free starts the next task; a task is collected when its launcher says that it
 * has ended, or is gone. What must survive a crash is on disk before it happens: that a task is about to be launched is
 * durable before its launcher is started, so no crash makes it run twice. What a launcher did is in the files of its task,
 * so nothing of it is lost while we are not looking.
 */

import { messageOf } from '../../shared/errors.ts'
import { isoTime } from '../../shared/iso-time.ts'
import type { Log } from '../../shared/log.ts'
import { nextTurn } from '../../shared/steps.ts'
import type { Asking, Ledger } from '../ledger/ledger.ts'
import { Refusal } from '../refusal.ts'
import type { DirectoryGuard } from '../store/directory-guard.ts'
import type { NewEvent } from '../store/events.ts'
import type { GroupCommit } from '../store/group-commit.ts'
import type { Change, LiveTask, TaskStore } from '../store/task-store.ts'
import type { TaskRow } from '../store/tasks.ts'
import {
  type Ending,
  endChange,
  endWithoutPlace,
  killedBeforeStart,
  killRequested,
  type StartedProcess,
  startedChange,
  timeoutEvents,
} from './ending.ts'
import { KillSender } from './kill-sender.ts'
import { LaunchRetries } from './launch-retries.ts'
import type { Launches, PreparedLaunch } from './launches.ts'
import { isOverdue } from './overdue.ts'
import type { ResultFiles } from './result-files.ts'
import { RunningTask } from './running-task.ts'
import { shortageOf } from './shortage.ts'
import type { WaitingQueue } from './waiting-queue.ts'

/** Milliseconds that a kill waits for a launch that is under way, so that events come in their order. */
const SETTLE_MS = 1_000

/**
 * Milliseconds without a word after which the record of a launcher is believed to be that of a running program. It is
 * there before the program is, so earlier than that the start may still fail.
 */
const UNHEARD_MS = 2_000

/** Milliseconds between two looks for the outcome of a task that runs for all we have heard. */
const OUTCOME_LOOK_MS = 5_000

export interface DispatcherOptions {
  readonly store: TaskStore
  readonly commit: GroupCommit
  readonly directory: Pick<DirectoryGuard, 'look'>
  readonly ledger: Ledger
  readonly queue: WaitingQueue<LiveTask>
  readonly launches: Launches
  readonly results: ResultFiles
  readonly bootId: string
  /** Milliseconds between TERM and KILL. */
  readonly graceMs: number
  /** Milliseconds for which a launch is tried again that the machine refuses for want of processes or memory. */
  readonly retryMs: number
  readonly log: Log
}

/** A place among the running tasks: what must be written down with it before the launch. */
export interface Place {
  readonly patch: { readonly launch_boot_id: string; readonly reserved_at: number; readonly released_at: null }
  readonly events: readonly NewEvent[]
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #running = new Map<string, RunningTask>()
  /** Kills that are being written down, by task id: who asks again waits for the same. */
  readonly #killing = new Map<string, Promise<void>>()
  readonly #kills: KillSender
  readonly #retries: LaunchRetries
  #isStopping = false
  /** Told of each task whose process runs, or did so unheard until it had ended. */
  onRunning: () => void = () => {}
  /** Told of each task that has ended, once that is durable. */
  onEnded: (row: TaskRow) => void = () => {}

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#kills = new KillSender(options.launches, options.log)
    this.#retries = new LaunchRetries({ ...options, isStopping: () => this.#isStopping })
  }

  get waitingCount(): number {
    return this.#options.queue.length
  }

  get runningCount(): number {
    return this.#running.size
  }

  /** Whether the task is being launched, runs, or is being ended. */
  isRunning(taskId: string): boolean {
    return this.#running.has(taskId)
  }

  /** Whether a task that comes now may start at once: there is room for it, and nobody waits before it. */
  hasRoomFor(asking: Asking): boolean {
    const { queue, ledger, commit } = this.#options
    return !this.#isStopping && commit.fault === undefined && queue.length === 0 && ledger.fitsNow(asking)
  }

  /** Takes a place for a task, which must fit. Whoever takes it launches, or gives it back. */
  reserve(asking: Asking & { readonly task_id: string }): Place {
    const now = Date.now()
    const { task_id, tenant, reservation } = asking
    this.#options.ledger.reserve({ task_id, tenant, reservation, reserved_at: isoTime(now) })
    return {
      patch: { launch_boot_id: this.#options.bootId, reserved_at: now, released_at: null },
      events: [{ event_type: 'resource_reserved', message: 'resources reserved', data: reservation, timestamp: now }],
    }
  }

  /** The place of a task that is not launched after all. */
  giveBack(taskId: string): void {
    this.#options.ledger.release(taskId)
    this.startWhatFits()
  }

  /** A task that was accepted waits for its place, or finds it at once. */
  enqueue(task: LiveTask): void {
    this.add(task)
    this.startWhatFits()
  }

  /** A task that waits, of an earlier service. */
  add(task: LiveTask): void {
    this.#options.queue.add(task)
  }

  /** A task that waited and will not start here; `why` in words. */
  giveUp(task: LiveTask, why: string): void {
    const ending: Ending = { status: 'failed', error: { code: 'internal', message: why }, finishedAt: Date.now() }
    this.#inBackground(task, this.#seenAsEnded(task, endWithoutPlace(ending)))
  }

  /** A task without a place that was asked to end. */
  endKilled(task: LiveTask): void {
    this.#inBackground(task, this.#seenAsEnded(task, killedBeforeStart(task, Date.now())))
  }

  /** Starts waiting tasks for which there is room now. */
  startWhatFits(): void {
    const { queue, commit } = this.#options
    while (!this.#isStopping && commit.fault === undefined) {
      const task = queue.takeNext()
      if (task === undefined) return
      this.#inBackground(task, this.#reserveAndLaunch(task))
    }
  }

  /** Nobody waits for it; what fails all the same is a mistake of ours, and must be seen. */
  #inBackground(task: LiveTask, work: Promise<void>): void {
    work.catch((error) => this.#cannotLookAfter(task, error))
  }

  #cannotLookAfter({ task_id }: LiveTask, error: unknown): void {
    this.#options.log.error('a task cannot be looked after', { task_id, cause: messageOf(error) })
  }

  async #reserveAndLaunch(task: LiveTask): Promise<void> {
    const place = this.reserve(task)
    const running = this.#track(new RunningTask(task, false))
    let prepared: PreparedLaunch | undefined
    await this.#options.store.change(task, place, () => {
      prepared = this.#options.launches.prepare(task)
    })
    await this.#start(running, prepared!)
  }

  /** Starts a task whose place is written down. */
  launch(task: LiveTask, prepared: PreparedLaunch): void {
    this.#inBackground(task, this.#start(this.#track(new RunningTask(task, false)), prepared))
  }

  #track(running: RunningTask): RunningTask {
    this.#running.set(running.task.task_id, running)
    return running
  }

  /** One that was killed while its place was being written down, which takes long on a full disk, is not launched. */
  async #start(running: RunningTask, prepared: PreparedLaunch): Promise<void> {
    await this.#endAfter(running, () => this.#options.launches.run(running, prepared))
  }

  async #endAfter(running: RunningTask, launch: () => Promise<Ending>): Promise<void> {
    const ending = await this.#retries.run(running, launch)
    if (ending !== undefined) await this.#end(running, ending)
  }

  /** A task that an earlier service launched, and whose launcher lives. */
  adopt(task: LiveTask): void {
    const running = this.#track(new RunningTask(task, true))
    if (task.row.kill_requested_at !== null) this.#kills.send(running)
  }

  /**
   * Looks at what launchers may not have told: one that was killed tells nobody, and a full pipe drops lines. A safety
   * net, for those that an earlier service had started, and those of which nothing was heard.
   */
  lookAround(): void {
    const { directory, launches, results } = this.#options
    if (directory.look() !== undefined) return // running tasks would seem to have no launcher any more
    launches.lookAround()
    results.writeAgain()
    for (const running of this.#running.values()) {
      try {
        this.#lookAt(running)
      } catch (error) {
        this.#cannotLookAfter(running.task, error)
      }
    }
    this.startWhatFits()
  }

  #lookAt(running: RunningTask): void {
    const { launches, graceMs } = this.#options
    const { task, isAdopted, isForced, launchedSince } = running
    if (launchedSince === undefined) return
    // Of one that was killed and still cannot be asked for, nothing will be heard.
    if (isAdopted && !(launches.isLive(task) ?? !isForced)) {
      this.onLauncherGone(task.task_id)
      return
    }
    if (isOverdue(running, graceMs)) this.#inBackground(task, this.#endByForce(running))
    if (running.isForced) return
    const now = performance.now()
    if (task.row.started_at === null && now - launchedSince > UNHEARD_MS) {
      const started = launches.startedProcess(task)
      if (started !== undefined) this.onStarted(task.task_id, started)
    }
    if (now - running.lookedSince <= OUTCOME_LOOK_MS) return
    running.lookedSince = now
    if (launches.isThrough(task)) this.onOutcome(task.task_id)
  }

  async #endByForce(running: RunningTask): Promise<void> {
    const { launches } = this.#options
    const { task, isEnding } = running
    if (isEnding || running.isForced) return
    running.isForced = true
    try {
      if (await launches.endByForce(task)) this.onOutcome(task.task_id)
    } catch (error) {
      running.isForced = false // at the next look
      throw error
    }
  }

  /** The launcher of a task says, or we did it in its place, that the outcome is there. */
  onOutcome(taskId: string): void {
    if (!this.#options.launches.onOutcome(taskId)) this.onLauncherGone(taskId)
  }

  /** The launcher of a task says, or we saw, that its process runs. */
  onStarted(taskId: string, started: StartedProcess): void {
    const running = this.#running.get(taskId)
    if (running === undefined || running.isEnding || running.task.row.started_at !== null) return
    running.startedSince = performance.now()
    this.#options.store.note(running.task, startedChange(started))
    this.onRunning()
    running.settle()
  }

  /** The launcher of a task says that its wall time is over. A line that was lost is made up for by the end. */
  onTimeout(taskId: string): void {
    const running = this.#running.get(taskId)
    if (running === undefined || running.isEnding || running.task.row.started_at === null) return
    const events = timeoutEvents(running.task.events)
    if (events.length > 0) this.#options.store.note(running.task, { patch: {}, events })
  }

  /** The launcher of a task that we adopted says, or we saw, that it is done. */
  onLauncherGone(taskId: string): void {
    const running = this.#running.get(taskId)
    if (running !== undefined) this.#inBackground(running.task, this.#collect(running))
  }

  async #collect(running: RunningTask): Promise<void> {
    if (!running.isAdopted || running.isEnding) return
    running.isEnding = true
    const ending = await this.#options.launches.ending(running)
    if (shortageOf(ending) === undefined) return await this.#end(running, ending)
    if (this.#options.launches.isLive(running.task) !== false) {
      // A retry needs the lock of the task, which its launcher holds until it is gone: `lookAround` comes back.
      running.isEnding = false
      return
    }
    // The machine refused it under the earlier service, which did not come to try again.
    await this.#endAfter(this.#track(new RunningTask(running.task, false)), async () => ending)
  }

  /** Nothing of the task runs any more: its place is free at once, others see its end when it is durable. */
  async #end(running: RunningTask, ending: Ending): Promise<void> {
    const { ledger } = this.#options
    const { task } = running
    running.isEnding = true
    if (ending.started !== undefined && task.row.started_at === null) this.onRunning()
    running.settle()
    ledger.release(task.task_id)
    this.#running.delete(task.task_id)
    const seen = this.#seenAsEnded(task, endChange(task, ending))
    this.startWhatFits() // in the same group commit
    await seen
  }

  async #seenAsEnded(task: LiveTask, change: Change): Promise<void> {
    const { store, launches, results, log } = this.#options
    launches.close(task)
    const row = await store.end(task, change, {
      meanwhile: (ended) => results.prepare(task, ended),
      beforeSeen: () => results.write(task),
    })
    log.info('task ended', endedFields(row))
    this.onEnded(row)
  }

  /**
   * Asks for the end of a task; `owner` is what the caller claims to be. Resolves when the kill is durable, or, on a failing
   * disk, when the launcher has received it. Throws
   * 503 when that cannot be promised; then the task goes on as if nobody had asked. A task that has ended stays as it is.
   */
  async kill(taskId: string, owner: string | null, traceId: string): Promise<void> {
    const { store, queue } = this.#options
    const task = store.liveTask(taskId)
    const wanted = (task?.row ?? store.get(taskId))?.owner ?? null
    if (wanted !== null && wanted !== owner) {
      throw new Refusal('permission_denied', `kill requires owner '${wanted}'`, { header: 'x-service-owner' })
    }
    if (task === undefined) return
    // Accepted, and not queued or launched yet: it is in a moment.
    if (!task.isEnding && !queue.has(taskId) && !this.#running.has(taskId)) await nextTurn()
    let kill = this.#killing.get(taskId)
    if (kill === undefined) {
      kill = this.#kill(task, traceId).finally(() => this.#killing.delete(taskId))
      this.#killing.set(taskId, kill)
    }
    await kill
  }

  async #kill(task: LiveTask, traceId: string): Promise<void> {
    const { store, queue, log } = this.#options
    const { task_id } = task
    // So that events come in their order.
    const before = this.#running.get(task_id)
    await within(SETTLE_MS, before?.settled ?? Promise.resolve())
    if (!this.#isEnding(task) && task.row.kill_requested_at === null) {
      const change = { patch: { kill_requested_at: Date.now() }, events: [killRequested()] }
      try {
        await store.promise(task, change)
      } catch (error) {
        if (!this.#isTakenByLauncher(task)) throw error
        // It is told, and ends the task whatever becomes of us: a full disk does not keep a task from being killed.
        store.note(task, change)
      }
      log.info('kill requested', { trace_id: traceId, task_id })
    }
    if (queue.remove(task_id) !== undefined) {
      this.endKilled(task)
      this.startWhatFits()
    }
    if (this.#isEnding(task)) return await within(SETTLE_MS, task.ended)
    const running = this.#running.get(task_id)
    // It may have been launched while the kill was written: to end it by force now would be too early.
    if (running !== undefined && running !== before) {
      await within(SETTLE_MS, running.settled)
      if (this.#isEnding(task)) return await within(SETTLE_MS, task.ended)
    }
    if (running !== undefined && running.killedSince === undefined) this.#carryOutKill(running)
  }

  #isEnding(task: LiveTask): boolean {
    return task.isEnding || this.#running.get(task.task_id)?.isEnding === true
  }

  /** Whether the launcher of a task has just been told to end it. */
  #isTakenByLauncher(task: LiveTask): boolean {
    const running = this.#running.get(task.task_id)
    return running !== undefined && !running.isDelayed && this.#kills.send(running, { isOnce: true })
  }

  #carryOutKill(running: RunningTask): void {
    const { task } = running
    const isTold = this.#askForEnd(running)
    // What did not begin in all that time, and has no launcher either that could be asked to end it.
    const isUnbegun = !isTold && running.launchedSince !== undefined && !this.#options.launches.hasBegun(task)
    if (isUnbegun && !running.isEnding) this.#inBackground(task, this.#endByForce(running))
  }

  /** Whether there was somebody to ask: a launcher, or who waits to launch it again. */
  #askForEnd(running: RunningTask): boolean {
    if (!running.isDelayed) return this.#kills.send(running)
    running.endDelay()
    return true
  }

  /** No task starts any more. Those that run go on, whether we are here or not. */
  stop(): void {
    this.#isStopping = true
  }
}

const endedFields = (row: TaskRow) => ({
  ...(row.trace_id !== null && { trace_id: row.trace_id }),
  task_id: row.task_id,
  status: row.status,
  ...(row.error !== null && { error: JSON.parse(row.error) as object }),
})

async function within(ms: number, event: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([event, late.promise])
  clearTimeout(timer)
}
