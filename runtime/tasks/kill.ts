/**
 * Killing a task: a caller asks for its end, and its launcher is told, again and again until the task has ended.
 *
 * A kill may meet its task in any phase. It is written down before it is carried out, and it waits for a launch that is
 * under way, so that the events come in their order.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { nextTurn } from '../../shared/process/steps.ts'
import { Refusal } from '../refusal.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { Dispatcher } from './dispatcher.ts'
import { killRequested } from './ending.ts'
import type { Flight, InFlight } from './flight.ts'
import type { Force } from './force.ts'
import type { LauncherRecords } from './launcher-records.ts'
import type { WaitingQueue } from './waiting-queue.ts'

/** Milliseconds that a kill waits for a launch under way, and for the end of a task that is ending. */
const SETTLE_MS = 1_000

/** Milliseconds until a kill that the launcher could not take yet is sent again. */
const KILL_AGAIN_MS = 10

/** The same for a kill that was sent: a signal may get lost among others, and one more makes no difference. */
const KILL_TOLD_AGAIN_MS = 1_000

/** Tells launchers to end their tasks. */
export class KillSender {
  readonly #records: LauncherRecords
  readonly #log: Log
  /** Tasks whose launcher could not be found out, which is logged once for each. */
  readonly #hindered = new WeakSet<Flight>()

  constructor(records: LauncherRecords, log: Log) {
    this.#records = records
    this.#log = log
  }

  /** Tells the launcher from now on until its task has ended. Returns whether there was a launcher to tell now. */
  send(flight: Flight): boolean {
    if (flight.phase.name === 'ending') return true
    const isTold = this.#isTold(flight)
    this.#sendAgain(flight, isTold)
    return isTold
  }

  /** The same, but only if the launcher can be told now. */
  trySend(flight: Flight): boolean {
    if (flight.phase.name === 'ending') return true
    const isTold = this.#isTold(flight)
    if (isTold) this.#sendAgain(flight, isTold)
    return isTold
  }

  #sendAgain(flight: Flight, isTold: boolean): void {
    flight.killSentMs ??= performance.now()
    setTimeout(() => this.send(flight), isTold ? KILL_TOLD_AGAIN_MS : KILL_AGAIN_MS).unref()
  }

  /** False between the launch and the record of it, and while that record cannot be read. */
  #isTold(flight: Flight): boolean {
    try {
      return this.#records.sendKill(flight.task)
    } catch (error) {
      if (!this.#hindered.has(flight)) {
        const { task_id } = flight.task
        this.#log.warn('cannot ask a launcher to end its task yet', { task_id, cause: messageOf(error) })
      }
      this.#hindered.add(flight)
      return false
    }
  }
}

export interface KillsOptions {
  readonly store: TaskStore
  readonly queue: WaitingQueue<LiveTask>
  readonly inFlight: InFlight
  readonly dispatcher: Pick<Dispatcher, 'endKilled' | 'startWhatFits'>
  readonly records: LauncherRecords
  readonly force: Force
  readonly sender: KillSender
  readonly log: Log
}

/** A call to kill one task. */
export interface KillCall {
  readonly taskId: string
  /** The owner that the caller claims to be. */
  readonly owner: string | null
  readonly traceId: string
}

/** The kills that callers ask for. */
export class Kills {
  readonly #options: KillsOptions
  /** Kills that are being written down, by task id. A second caller waits for the same. */
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(options: KillsOptions) {
    this.#options = options
  }

  /**
   * Resolves once the kill is durable, or, on a failing disk, once the launcher has received it. Throws a `Refusal`
   * (403), or 503 when neither is possible, and then nothing has changed. An ended task stays as it is.
   */
  async kill({ taskId, owner, traceId }: KillCall): Promise<void> {
    const { store, queue, inFlight } = this.#options
    const task = store.liveTask(taskId)
    const wanted = (task?.row ?? store.get(taskId))?.owner ?? null
    if (wanted !== null && wanted !== owner) {
      throw new Refusal('permission_denied', `kill requires owner '${wanted}'`, { header: 'x-service-owner' })
    }
    if (task === undefined) return
    // The task was just accepted, and will be in the queue or in flight in a moment.
    if (!task.isEnding && !queue.has(taskId) && !inFlight.has(taskId)) await nextTurn()
    let kill = this.#underWay.get(taskId)
    if (kill === undefined) {
      kill = this.#kill(task, traceId).finally(() => this.#underWay.delete(taskId))
      this.#underWay.set(taskId, kill)
    }
    await kill
  }

  async #kill(task: LiveTask, traceId: string): Promise<void> {
    const { queue, dispatcher, inFlight } = this.#options
    const launchBefore = inFlight.get(task.task_id)?.settled
    await within(SETTLE_MS, launchBefore)
    if (!this.#isEnding(task) && task.row.kill_requested_at === null) await this.#writeDown(task, traceId)
    if (queue.remove(task.task_id) !== undefined) {
      dispatcher.endKilled(task)
      dispatcher.startWhatFits()
    }
    const flight = inFlight.get(task.task_id)
    // Launched while the kill was being written: it is too early to end it by force.
    if (!this.#isEnding(task) && flight?.settled !== launchBefore) await within(SETTLE_MS, flight?.settled)
    if (this.#isEnding(task)) return await within(SETTLE_MS, task.ended)
    if (flight !== undefined && flight.killSentMs === undefined) this.#carryOut(flight)
  }

  async #writeDown(task: LiveTask, traceId: string): Promise<void> {
    const { store, log } = this.#options
    const change = { patch: { kill_requested_at: Date.now() }, events: [killRequested()] }
    try {
      await store.promise(task, change)
    } catch (error) {
      if (!this.#isTakenByLauncher(task)) throw error
      // The launcher ends the task whatever becomes of us: a full disk does not keep a task from being killed.
      store.note(task, change)
    }
    log.info('kill requested', { trace_id: traceId, task_id: task.task_id })
  }

  #isTakenByLauncher({ task_id }: LiveTask): boolean {
    const flight = this.#options.inFlight.get(task_id)
    return flight !== undefined && this.#options.sender.trySend(flight)
  }

  #isEnding(task: LiveTask): boolean {
    return task.isEnding || this.#options.inFlight.get(task.task_id)?.phase.name === 'ending'
  }

  #carryOut(flight: Flight): void {
    const { sender, records, force } = this.#options
    if (flight.phase.name === 'delayed') {
      flight.phase.wake()
      return
    }
    const isTold = sender.send(flight)
    // After all that time the launch has not begun, and there is no launcher to ask.
    if (!isTold && flight.launch !== undefined && !records.hasBegun(flight.task)) void force.end(flight)
  }
}

async function within(ms: number, event: Promise<unknown> | undefined): Promise<void> {
  if (event === undefined) return
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([event, late.promise])
  clearTimeout(timer)
}
