/**
 * The tasks in flight: those that hold a reservation. Each has a flight, from the reservation to the end.
 *
 * The phase of a flight holds what is true of its launch now. Times are `performance.now()` in milliseconds: launchers
 * measure with a monotonic clock, too.
 */
import type { Asked } from '../launch/classification.ts'
import type { Launcher, LauncherEnd } from '../launch/launcher-host.ts'
import type { LauncherEvent } from '../launch/notify.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { TaskStore } from '../store/task-store.ts'
import { type StartedProcess, startedChange, startedProcess, timeoutEvents } from './ending.ts'
import type { Totals } from './totals.ts'

/** A fault that kept a launcher from writing any record. */
export interface LauncherFault {
  readonly step: string
  readonly errno: number
}

export type Phase =
  /** The reservation is being written down. No launcher was asked for. */
  | { readonly name: 'reserved' }
  | LaunchedPhase
  /** The machine refused the launch, or inputs are copied. The next launch waits until `wake` is called. There is no launcher. */
  | { readonly name: 'delayed'; readonly wake: () => void }
  /** The end is known and is being written down. */
  | { readonly name: 'ending' }

export type LaunchedPhase =
  /** A launcher was asked for. Nothing says yet that it started the process of the task. */
  | { readonly name: 'launched'; readonly launch: Launch }
  /** The process of the task was started. */
  | { readonly name: 'started'; readonly launch: Launch; readonly startedMs: StartedMs }
  /** The launcher did not end the task in time, so the service is killing both. */
  | { readonly name: 'forced'; readonly launch: Launch; readonly startedMs: StartedMs }

/** When this service heard of the start; undefined where it did not, because an earlier service did. */
type StartedMs = number | undefined

/** A launcher that was asked for, and what it has said. */
export class Launch {
  readonly launcher: Launcher
  /** The request as far as the end of the task depends on it. Undefined for a launch of an earlier service. */
  readonly asked: Asked | undefined
  /** When the launcher was asked for, or taken over from an earlier service. */
  readonly launchedMs: number
  readonly #outcome = Promise.withResolvers<LauncherEnd>()
  readonly #fault = Promise.withResolvers<LauncherFault>()

  constructor(launcher: Launcher, asked: Asked | undefined, launchedMs: number = performance.now()) {
    this.launcher = launcher
    this.asked = asked
    this.launchedMs = launchedMs
  }

  get isAdopted(): boolean {
    return this.asked === undefined
  }

  /** Resolves once the outcome is written, or the launcher is gone. The outcome may not be synced yet. */
  get over(): Promise<LauncherEnd> {
    return Promise.race([this.launcher.gone, this.#outcome.promise])
  }

  get fault(): Promise<LauncherFault> {
    return this.#fault.promise
  }

  /** The outcome is there. */
  readonly endHeard = (): void => this.#outcome.resolve({})

  /** The launcher could not begin, and there is no outcome. */
  faultHeard(fault: LauncherFault): void {
    this.#fault.resolve(fault)
  }
}

/** A task in flight. */
export class Flight {
  readonly task: LiveTask
  #phase: Phase = { name: 'reserved' }
  /** Since when its launcher is asked to end the task. A kill may meet any phase. */
  killSentMs: number | undefined
  /** When the record of the launcher was last checked for an outcome without an event: another process may read our FIFO. */
  outcomeCheckedMs: number = performance.now()
  #settled = Promise.withResolvers<void>()

  constructor(task: LiveTask) {
    this.task = task
  }

  get phase(): Phase {
    return this.#phase
  }

  /** The phase while there is a launcher. */
  get launchedPhase(): LaunchedPhase | undefined {
    const phase = this.#phase
    return phase.name === 'launched' || phase.name === 'started' || phase.name === 'forced' ? phase : undefined
  }

  get launch(): Launch | undefined {
    return this.launchedPhase?.launch
  }

  /**
   * Resolves once this launch has started the task, or it is certain that it will not. Another launch has another
   * promise.
   */
  get settled(): Promise<void> {
    return this.#settled.promise
  }

  launched(launch: Launch): void {
    this.#phase = { name: 'launched', launch }
  }

  /** The launch of an earlier service; the row says whether that saw the task start. */
  adopted(launch: Launch): void {
    this.launched(launch)
    if (this.task.row.started_at === null) return
    this.#phase = { name: 'started', launch, startedMs: undefined }
    this.#settled.resolve()
  }

  /** This service has just heard that the process of the task runs. */
  startHeard(): void {
    const phase = this.launchedPhase
    if (phase === undefined) return
    const startedMs = performance.now()
    if (phase.name === 'forced') this.#phase = { ...phase, startedMs }
    else this.#phase = { name: 'started', launch: phase.launch, startedMs }
    this.#settled.resolve()
  }

  /** The task is ended by force. Returns the way back, for a force that did not work. */
  forced(before: LaunchedPhase): () => void {
    const { launch } = before
    const startedMs = before.name === 'launched' ? undefined : before.startedMs
    this.#phase = { name: 'forced', launch, startedMs }
    return () => {
      const phase = this.#phase
      if (phase.name !== 'forced') return
      this.#phase = phase.startedMs === startedMs ? before : { name: 'started', launch, startedMs: phase.startedMs }
    }
  }

  /** Resolves when the launch shall be tried again: when `wake` of the phase is called. */
  async delayed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#phase = { name: 'delayed', wake: resolve }
    this.#settled.resolve()
    await promise
    this.#phase = { name: 'reserved' }
    this.#settled = Promise.withResolvers()
  }

  ending(): void {
    this.#phase = { name: 'ending' }
    this.#settled.resolve()
  }
}

/** All tasks in flight, by id, and what launchers say of them. */
export class InFlight {
  readonly #store: Pick<TaskStore, 'note'>
  readonly #totals: Pick<Totals, 'started'>
  readonly #flights = new Map<string, Flight>()

  constructor(store: Pick<TaskStore, 'note'>, totals: Pick<Totals, 'started'>) {
    this.#store = store
    this.#totals = totals
  }

  get count(): number {
    return this.#flights.size
  }

  add(task: LiveTask): Flight {
    const flight = new Flight(task)
    this.#flights.set(task.task_id, flight)
    return flight
  }

  get(taskId: string): Flight | undefined {
    return this.#flights.get(taskId)
  }

  has(taskId: string): boolean {
    return this.#flights.has(taskId)
  }

  remove({ task }: Flight): void {
    this.#flights.delete(task.task_id)
  }

  [Symbol.iterator](): IterableIterator<Flight> {
    return this.#flights.values()
  }

  /** What launchers and their fork server say about a task. */
  heard(event: LauncherEvent): void {
    const flight = this.#flights.get(event.task_id)
    const launch = flight?.launch
    if (flight === undefined || launch === undefined) return
    launch.launcher.heard(event)
    if (event.event === 'started') this.started(flight, startedProcess(event))
    else if (event.event === 'timeout') this.#timedOut(flight)
    else if (event.event === 'failed') launch.faultHeard(event)
    else if (event.event === 'ended') launch.endHeard()
  }

  /** The fork server has ended, and each launcher has to see for itself. */
  serverEnded(): void {
    for (const { launch } of this) launch?.launcher.serverEnded()
  }

  /** The process of a task was started, as its launcher says or its record shows. */
  started(flight: Flight, started: StartedProcess): void {
    if (flight.task.row.started_at !== null) return
    flight.startHeard()
    this.#store.note(flight.task, startedChange(started))
    this.#totals.started()
  }

  /** The wall time of a task is over. If this line is lost the end of the task makes up for it. */
  #timedOut({ task }: Flight): void {
    if (task.row.started_at === null) return
    const events = timeoutEvents(task.events)
    if (events.length > 0) this.#store.note(task, { patch: {}, events })
  }
}
