/**
 * The tasks in flight: those that hold a reservation. One flight owns a task from its reservation to its end.
 *
 * Nothing here polls. A launcher says when its task has started and ended. What must survive a crash is on disk before
 * it happens: that a task is about to be launched (`launch_boot_id`) is durable before its launcher is asked for, so no
 * crash makes it run twice. What a launcher did is in the files of its task, so nothing is lost while no service is
 * there to listen.
 *
 * Launches that the machine refuses for want of processes or memory are tried again. Meanwhile the task keeps its
 * reservation: another task in its place would make the shortage worse. It has no launcher, and on disk it looks as if
 * it had never been launched (`launch_boot_id` is null), so a service that starts meanwhile launches it. The same holds
 * while its inputs are copied.
 *
 * The phase of a flight says whether there is a launch, which knows how far it came (`launch.ts`). A kill may meet any phase.
 * Times are `performance.now()` in milliseconds: launchers measure with a monotonic clock, too.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import { bootId } from '../../shared/process/processes.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import type { TaskError } from '../launch/classification.ts'
import type { LauncherEvent } from '../launch/notify.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Context } from './context.ts'
import type { Ends } from './end.ts'
import {
  cancelledBeforeStart,
  type Ending,
  endChange,
  type StartedProcess,
  startedChange,
  startedProcess,
  timeoutEvents,
} from './ending.ts'
import type { Inputs } from './inputs.ts'
import { adoptedLauncher, cannotStart, Launch, type LaunchContext, launchTask } from './launch.ts'
import { gaveUp, launchDelayed, ranOutOfTime, refusalOf } from './launch-refusal.ts'
import type { Outputs } from './outputs.ts'

export type Phase =
  /** The reservation, or that the task is about to be launched, is being written down. No launcher was asked for. */
  | { readonly name: 'reserved' }
  /** A launcher was asked for, which may have started the process of the task. */
  | { readonly name: 'launched'; readonly launch: Launch }
  /** The machine refused the launch, or inputs are copied. The next launch waits until `wake` is called. There is no launcher. */
  | { readonly name: 'delayed'; readonly wake: () => void }
  /** The end is known and is being written down. */
  | { readonly name: 'ending' }

/** Milliseconds between two launches of a task. */
const RETRY_PAUSES = { firstMs: 100, longestMs: 2_000 }

/** Milliseconds until a kill that the launcher could not take yet is sent again. */
const KILL_AGAIN_MS = 10

/** The same for a kill that was sent: a signal may get lost among others, and one more makes no difference. */
const KILL_TOLD_AGAIN_MS = 1_000

/**
 * Milliseconds without a word after which the record of a launcher counts as that of a running program. The record is
 * there before the program is, so earlier than that the start may still fail.
 */
const UNHEARD_MS = 2_000

/** Milliseconds between two checks for the outcome of a task that runs as far as we have heard. */
const OUTCOME_CHECK_MS = 5_000

/**
 * Milliseconds after the end of the grace period at which a launcher counts as unable to end its task. Shorter, and a
 * machine under load loses outcomes. A launcher takes that long only when the task has stopped or crippled it.
 */
const OVERDUE_MS = 5_000

/** Lets tasks start in the place of those that have ended, and says whether the service stops. */
interface Turns {
  readonly isStopping: boolean
  startWhatFits(): void
}

export type FlightContext = LaunchContext &
  Context<'ledger' | 'totals' | 'log', 'terminationGraceMs' | 'launchRetryMs'> & {
    readonly inFlight: InFlight
    readonly ends: Ends
    readonly inputs: Inputs
    readonly outputs: Outputs
    readonly dispatcher: Turns
  }

/** A task in flight. */
export class Flight {
  readonly task: LiveTask
  readonly #context: FlightContext
  #phase: Phase = { name: 'reserved' }
  #settled = Promise.withResolvers<void>()
  /** Since when its launcher is asked to end the task. */
  #killSentMs: number | undefined
  #isKillHindered = false
  /** When the record of the launcher was last checked for an outcome without an event: another process may read our FIFO. */
  #outcomeCheckedMs: number = performance.now()

  constructor(context: FlightContext, task: LiveTask) {
    this.#context = context
    this.task = task
  }

  get phase(): Phase {
    return this.#phase
  }

  /** While there is a launcher. */
  get launch(): Launch | undefined {
    return this.#phase.name === 'launched' ? this.#phase.launch : undefined
  }

  /**
   * Resolves once this launch has started the task, or it is certain that it will not. Another launch has another
   * promise.
   */
  get settled(): Promise<void> {
    return this.#settled.promise
  }

  get #isKilled(): boolean {
    return this.task.row.kill_requested_at !== null
  }

  /**
   * Sees a task whose reservation is durable to its end, or until this service stops, and then the next one goes on.
   * `request` is given if the task was accepted just now.
   */
  async fly(request?: TaskRequest): Promise<void> {
    const hasInputs = this.task.row.inputs !== null
    if (hasInputs && !(await this.#copyInputs())) return
    const sinceMs = performance.now()
    await this.#endAfter(await this.#launchUnlessKilled(hasInputs ? undefined : request), sinceMs)
  }

  /** False where the task is not to be launched here. */
  async #copyInputs(): Promise<boolean> {
    const { inputs, store, dispatcher } = this.#context
    const isOver = this.#delay()
    const filled = await inputs.fill(this.task, () => dispatcher.isStopping)
    this.#wake()
    await isOver
    if (filled === undefined) return false
    if ('ending' in filled) {
      await this.#end(filled.ending)
      return false
    }
    const { patch, events } = filled.change
    await store.change(this.task, { patch: { ...patch, launch_boot_id: bootId() }, events })
    return true
  }

  /**
   * Takes over a task that an earlier service launched, and whose launcher may be alive. `waitAgain` is called where its
   * launch came to nothing and its reservation has no user for another one.
   */
  async adopt(isLauncherAlive: boolean, waitAgain: () => void): Promise<void> {
    const { records } = this.#context
    const isAlive = () => records.isLauncherAlive(this.task) ?? !launch.isForced
    const launch: Launch = new Launch(adoptedLauncher(isAlive, isLauncherAlive), undefined)
    this.#phase = { name: 'launched', launch }
    if (this.task.row.started_at !== null) this.#settled.resolve()
    await this.#endAdopted(launch, isLauncherAlive, waitAgain)
  }

  /** A launcher that was alive and has ended without having begun was killed: its task is launched again. */
  async #endAdopted(launch: Launch, wasAlive: boolean, waitAgain: () => void): Promise<void> {
    await launch.over
    const { records, users, config } = this.#context
    const isUnbegun = wasAlive && !launch.isForced && !records.hasBegun(this.task)
    const first = isUnbegun ? undefined : await this.#endingOf(launch)
    const isToLaunch = first === undefined || (config.launchRetryMs > 0 && refusalOf(first) !== undefined)
    if (isToLaunch && users?.lacks(this.task)) return this.#land(waitAgain)
    const sinceMs = performance.now()
    await this.#endAfter(first ?? (await this.#launchAgain()), sinceMs)
  }

  /** Starts the launcher of the task and resolves with how that ended. Never rejects. */
  async #launchUnlessKilled(request?: TaskRequest): Promise<Ending> {
    // The kill may have come while the reservation was being written, which takes long on a full disk.
    if (this.#isKilled) return cancelledBeforeStart(Date.now())
    const fault = this.#context.secrets.hasCommand ? await this.#secretsFault(request) : undefined
    if (this.#isKilled) return cancelledBeforeStart(Date.now())
    const launched = fault ?? launchTask(this.#context, this.task, request)
    if ('error' in launched) return { status: 'failed', error: launched.error, finishedAt: Date.now() }
    this.#phase = { name: 'launched', launch: launched }
    return await this.#endingOf(launched)
  }

  /** Has a command print the secrets of the task again: their values may have gone while it waited. */
  async #secretsFault(given: TaskRequest | undefined): Promise<{ readonly error: TaskError } | undefined> {
    const { secrets, store } = this.#context
    try {
      await secrets.ready(given ?? store.requestOf(this.task.task_id))
      return undefined
    } catch (error) {
      return { error: cannotStart(error) }
    }
  }

  /** Makes the intent to launch durable before the launch. */
  async #launchAgain(): Promise<Ending> {
    await this.#context.store.change(this.task, { patch: { launch_boot_id: bootId() }, events: [] })
    return await this.#launchUnlessKilled()
  }

  /** Resolves with the end of the task of a launch, or with the refusal of the machine. Never rejects. */
  async #endingOf(launch: Launch): Promise<Ending> {
    const ending = await this.#context.ends.afterLaunch(this.task, launch)
    // The next launch needs the lock of the task, which this launcher holds until it is gone.
    if (refusalOf(ending) !== undefined) await launch.launcher.gone
    return ending
  }

  /** Ends the task as its last launch does. `first` is the end of a launch of `sinceMs`. */
  async #endAfter(first: Ending, sinceMs: number): Promise<void> {
    const ending = await this.#lastEnding(first, sinceMs)
    if (ending !== undefined) await this.#end(ending)
  }

  /** Launches the task again as long as the machine refuses. Undefined where this service stops first. */
  async #lastEnding(first: Ending, sinceMs: number): Promise<Ending | undefined> {
    if (refusalOf(first) === undefined) return first
    const { config, dispatcher } = this.#context
    const { limits } = this.task
    const endOfWallTime = sinceMs + limits.wall_time_ms
    const refusedMs = performance.now()
    const until = Math.min(refusedMs + config.launchRetryMs, endOfWallTime)
    let ending = first
    const pauses = new GrowingPause(RETRY_PAUSES)
    for (let tries = 1; ; tries++) {
      const refusal = refusalOf(ending)
      if (refusal === undefined) return ending
      if (this.#isKilled) return cancelledBeforeStart(Date.now())
      const now = performance.now()
      if (now >= endOfWallTime) return ranOutOfTime(refusal, limits)
      if (now >= until) return tries === 1 ? ending : gaveUp(refusal, tries, now - refusedMs)
      if (!this.#isPutBack(refusal, tries === 1)) return ending
      await this.#pause(Math.min(pauses.next(), until - now))
      if (dispatcher.isStopping) return undefined
      if (!this.#isKilled && performance.now() < endOfWallTime) ending = await this.#launchAgain()
    }
  }

  /** The task waits from now on, also for the next service. False where that is not possible. */
  #isPutBack(refusal: NonNullable<Ending['error']>, isFirst: boolean): boolean {
    const { records, ends, store, config, log } = this.#context
    const { task_id } = this.task
    try {
      records.remove(this.task) // no launcher starts a task that has an outcome
    } catch (error) {
      log.error('cannot remove the record of a launch that was refused', { task_id, cause: messageOf(error) })
      return false
    }
    ends.removeSecrets(this.task) // each launch reads them again
    if (isFirst) log.warn('the machine refuses a launch: it is tried again', { task_id, cause: refusal.message })
    const events = isFirst ? [launchDelayed(refusal, config.launchRetryMs)] : []
    store.note(this.task, { patch: { launch_boot_id: null }, events })
    return true
  }

  /** A kill ends the pause too: there is no launcher to be asked. */
  async #pause(ms: number): Promise<void> {
    const isOver = this.#delay()
    const timer = setTimeout(() => this.#wake(), ms)
    await isOver
    clearTimeout(timer)
  }

  /** Resolves when the launch shall be tried again. */
  async #delay(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#phase = { name: 'delayed', wake: resolve }
    this.#settled.resolve()
    await promise
    this.#phase = { name: 'reserved' }
    this.#settled = Promise.withResolvers()
  }

  #wake(): void {
    if (this.#phase.name === 'delayed') this.#phase.wake()
  }

  /**
   * Nothing of the task runs any more. Once its workspace has only its outputs, its reservation is released; others see
   * the end when it is durable.
   */
  async #end(found: Ending): Promise<void> {
    const { outputs, networks, ends, users, records, totals } = this.#context
    const { task } = this
    if (found.started !== undefined && task.row.started_at === null) totals.started()
    this.#ending()
    ends.removeSecrets(task) // first: no pattern keeps a file with a secret
    const used = networks.close(task, found)
    const ending = task.outputs === null ? used : await outputs.reduce(task, used)
    await users?.takeBack(task, records.dirOf(task), found.isOver === true)
    let written: Promise<void> | undefined
    this.#land(() => {
      written = ends.writeDown(task, endChange(task, ending))
    })
    await written
  }

  #ending(): void {
    this.#phase = { name: 'ending' }
    this.#settled.resolve()
  }

  /** Releases the reservation. Tasks that start in its place are written down together with what `next` writes. */
  #land(next: () => void): void {
    const { ledger, inFlight, dispatcher } = this.#context
    this.#ending()
    ledger.release(this.task.task_id)
    inFlight.delete(this.task.task_id)
    next()
    dispatcher.startWhatFits()
  }

  /** What the launcher and its fork server say of the task. */
  heard(event: LauncherEvent): void {
    const { launch } = this
    if (launch === undefined) return
    launch.heard(event)
    if (event.event === 'started') this.#started(startedProcess(event))
    else if (event.event === 'timeout') this.#timedOut()
  }

  /** The process of the task was started, as its launcher says or its record shows. */
  #started(started: StartedProcess): void {
    const { launch } = this
    if (launch === undefined || this.task.row.started_at !== null) return
    launch.startedMs = performance.now()
    this.#settled.resolve()
    this.#context.store.note(this.task, startedChange(started))
    this.#context.totals.started()
  }

  /** The wall time of the task is over. If this line is lost the end of the task makes up for it. */
  #timedOut(): void {
    if (this.task.row.started_at === null) return
    const events = timeoutEvents(this.task.events)
    if (events.length > 0) this.#context.store.note(this.task, { patch: {}, events })
  }

  /** Checks for what the launcher did not tell. */
  lookAround(): void {
    const { records } = this.#context
    const { task, launch } = this
    if (launch === undefined || launch.launcher.lookAround?.() === false) return
    if (this.#isOverdue(launch)) void this.force()
    if (launch.isForced) return
    const now = performance.now()
    if (task.row.started_at === null && now - launch.launchedMs > UNHEARD_MS) {
      const started = records.startedProcess(task)
      if (started !== undefined) this.#started(started)
    }
    if (now - this.#outcomeCheckedMs <= OUTCOME_CHECK_MS) return
    this.#outcomeCheckedMs = now
    if (records.isThrough(task)) launch.outcomeSeen()
  }

  /** Whether the launcher takes too long to end or to start its task: a task of the profile process can stop launchers. */
  #isOverdue({ launchedMs }: Launch): boolean {
    const endsAt = Math.min(launchedMs + this.task.limits.wall_time_ms, this.#killSentMs ?? Number.POSITIVE_INFINITY)
    return performance.now() > endsAt + this.#context.config.terminationGraceMs + OVERDUE_MS
  }

  /** Carries out a kill that is written down, once. */
  kill(): void {
    this.#wake()
    if (this.#killSentMs !== undefined || this.#phase.name === 'delayed') return
    // After all that time the launch has not begun, and there is no launcher to ask.
    if (!this.sendKill() && this.launch !== undefined && !this.#context.records.hasBegun(this.task)) void this.force()
  }

  /** Tells the launcher from now on to end the task, until that has ended. Returns whether there was a launcher to tell now. */
  sendKill(): boolean {
    return this.trySendKill() || this.#sendKillAgain(false)
  }

  /** The same, but only if the launcher can be told now. */
  trySendKill(): boolean {
    return this.#phase.name === 'ending' || (this.#isTold() && this.#sendKillAgain(true))
  }

  #sendKillAgain(isTold: boolean): boolean {
    this.#killSentMs ??= performance.now()
    setTimeout(() => this.sendKill(), isTold ? KILL_TOLD_AGAIN_MS : KILL_AGAIN_MS).unref()
    return isTold
  }

  /** False between the launch and the record of it, and while that record cannot be read, which is logged once. */
  #isTold(): boolean {
    const { records, log } = this.#context
    try {
      return records.sendKill(this.task)
    } catch (error) {
      if (!this.#isKillHindered) {
        const { task_id } = this.task
        log.warn('cannot ask a launcher to end its task yet', { task_id, cause: messageOf(error) })
      }
      this.#isKillHindered = true
      return false
    }
  }

  /** Kills the task and its launcher, unless that is under way. Never rejects: after a fault the next call tries again. */
  async force(): Promise<void> {
    const { records, force, log } = this.#context
    const { task, launch } = this
    if (launch === undefined || launch.isForced) return
    launch.isForced = true
    const { task_id } = task
    try {
      const isUnbegun = !records.hasBegun(task)
      if (isUnbegun) force.forestall(task)
      const missed = isUnbegun ? 'start' : 'end'
      log.error(`a launcher did not ${missed} its task in time: both are killed`, { task_id })
      await force.endWhatIsLeft(task)
      // No launcher is left to report the end.
      if (isUnbegun || records.isLauncherAlive(task) === false) launch.outcomeSeen()
    } catch (error) {
      launch.isForced = false
      log.error('a task cannot be looked after', { task_id, cause: messageOf(error) })
    }
  }
}

/** All tasks in flight, by id. */
export class InFlight extends Map<string, Flight> {
  heard(event: LauncherEvent): void {
    this.get(event.task_id)?.heard(event)
  }

  /** The fork server has ended, and each launcher has to see for itself. */
  serverEnded(): void {
    for (const { launch } of this.values()) launch?.launcher.serverEnded?.()
  }
}
