/**
 * Which accepted task starts when. Its flight (flight.ts) owns it from then on.
 *
 * Nothing here polls: a released reservation, a free user, or a disk that takes writes again starts the next task.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { bootId } from '../../shared/process/processes.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Asking } from '../ledger/ledger.ts'
import type { NewEvent } from '../store/events.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Ground } from './context.ts'
import { type Ending, endWithoutReservation, killedBeforeStart } from './ending.ts'
import { Flight, type FlightContext } from './flight.ts'

/** The change that is recorded with a reservation, before the launch. */
export interface Reserved {
  readonly patch: {
    readonly launch_boot_id: string | null
    readonly reserved_at: number
    readonly released_at: null
    readonly sandbox_uid: number | null
  }
  readonly events: readonly NewEvent[]
}

export type DispatcherContext = Omit<FlightContext, 'dispatcher'> &
  Pick<Ground, 'commit' | 'directory' | 'queue' | 'results'>

export class Dispatcher {
  readonly #context: DispatcherContext & FlightContext
  #isStopping = false

  constructor(context: DispatcherContext) {
    this.#context = { ...context, dispatcher: this }
    const { commit, users } = context
    void this.#startAtEach(() => commit.recovered)
    if (users !== undefined) void this.#startAtEach(() => users.freed)
  }

  async #startAtEach(occasion: () => Promise<void>): Promise<void> {
    for (;;) {
      await occasion()
      this.startWhatFits()
    }
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  get waitingCount(): number {
    return this.#context.queue.length
  }

  /** Whether a task that comes now may start at once: there is room for it, and no task waits before it. */
  hasRoomFor(asking: Asking): boolean {
    const { queue, ledger, commit } = this.#context
    return !this.#isStopping && commit.fault === undefined && queue.length === 0 && ledger.fitsNow(asking)
  }

  /**
   * Reserves what a task asks for, which must fit. The caller launches the task, or calls `giveBack`. A task with inputs is
   * about to be launched only once it has them.
   */
  reserve(asking: Asking & { readonly task_id: string }, hasInputs: boolean): Reserved {
    const now = Date.now()
    const { task_id, tenant, reservation, isSandboxed = false } = asking
    this.#context.ledger.reserve({ task_id, tenant, reservation, reserved_at: isoTime(now), isSandboxed })
    const sandbox_uid = (isSandboxed ? this.#context.users?.take(task_id) : undefined) ?? null
    return {
      patch: { launch_boot_id: hasInputs ? null : bootId(), reserved_at: now, released_at: null, sandbox_uid },
      events: [{ event_type: 'resource_reserved', message: 'resources reserved', data: reservation, timestamp: now }],
    }
  }

  /** Releases the reservation of a task that is not launched after all. */
  giveBack(taskId: string): void {
    this.#context.users?.giveBack(taskId)
    this.#context.ledger.release(taskId)
    this.startWhatFits()
  }

  /** An accepted task waits for its reservation, or gets it at once. */
  enqueue(task: LiveTask): void {
    this.add(task)
    this.startWhatFits()
  }

  /** A task of an earlier service waits. */
  add(task: LiveTask): void {
    this.#context.queue.add(task)
  }

  /** A waiting task will not start here; `why` is a sentence. */
  giveUp(task: LiveTask, why: string): void {
    const ending: Ending = { status: 'failed', error: { code: 'internal', message: why }, finishedAt: Date.now() }
    this.#inBackground(task, this.#context.ends.writeDown(task, endWithoutReservation(ending)))
  }

  /** A task without a reservation was killed. */
  endKilled(task: LiveTask): void {
    this.#inBackground(task, this.#context.ends.writeDown(task, killedBeforeStart(task, Date.now())))
  }

  /** Starts the waiting tasks for which there is room now. */
  startWhatFits(): void {
    const { queue, commit } = this.#context
    while (!this.#isStopping && commit.fault === undefined) {
      const task = queue.takeNext()
      if (task === undefined) return
      this.#inBackground(task, this.#reserveAndLaunch(task))
    }
  }

  async #reserveAndLaunch(task: LiveTask): Promise<void> {
    const reserved = this.reserve(task, task.row.inputs !== null)
    const flight = this.#take(task)
    await this.#context.store.change(task, reserved)
    await flight.fly()
  }

  /** Starts a task that was accepted just now with its reservation. */
  launch(task: LiveTask, request: TaskRequest): void {
    this.#inBackground(task, this.#take(task).fly(request))
  }

  /** Takes over a task that an earlier service launched (`Flight.adopt`). */
  adopt(task: LiveTask, isLauncherAlive: boolean, waitAgain: () => void): Flight {
    this.#context.users?.restore(task)
    const flight = this.#take(task)
    this.#inBackground(task, flight.adopt(isLauncherAlive, waitAgain))
    return flight
  }

  #take(task: LiveTask): Flight {
    const flight = new Flight(this.#context, task)
    this.#context.inFlight.set(task.task_id, flight)
    return flight
  }

  /**
   * A safety net: checks for what launchers did not tell. A launcher that was killed tells nothing, a full pipe drops
   * lines, and nobody tells of the end of launchers that an earlier service had started.
   */
  lookAround(): void {
    const { directory, inFlight, results } = this.#context
    if (directory.look() !== undefined) return // running tasks would seem to have no launcher any more
    results.writeAgain()
    for (const flight of inFlight.values()) {
      try {
        flight.lookAround()
      } catch (error) {
        this.#logFault(flight.task, error)
      }
    }
    this.startWhatFits()
  }

  /** Logs a rejection of `work`, which only a defect of ours can cause. */
  #inBackground(task: LiveTask, work: Promise<void>): void {
    work.catch((error) => this.#logFault(task, error))
  }

  #logFault({ task_id }: LiveTask, error: unknown): void {
    this.#context.log.error('a task cannot be looked after', { task_id, cause: messageOf(error) })
  }

  /** No task starts any more. Those in flight go on, whether this service is there or not. */
  stop(): void {
    this.#isStopping = true
  }
}
