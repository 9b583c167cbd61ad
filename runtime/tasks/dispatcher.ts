/**
 * From accepted to ended: which task starts when, and what happens to it while it is in flight.
 *
 * Nothing here polls. A released reservation starts the next task, and a task is collected when its launcher says that
 * it has ended, or is gone. What must survive a crash is on disk before it happens: that a task is about to be launched
 * is durable before its program is started, so no crash makes it run twice. What a launcher did is in the files of its
 * task, so nothing is lost while no service is there to listen.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { DirectoryGuard } from '../files/directory-guard.ts'
import type { Asking, Ledger } from '../ledger/ledger.ts'
import type { NewEvent } from '../store/events.ts'
import type { GroupCommit } from '../store/group-commit.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { TaskStore } from '../store/task-store.ts'
import { AdoptedLauncher } from './adopted-launcher.ts'
import type { Ends } from './end.ts'
import { type Ending, endChange, endWithoutReservation, killedBeforeStart } from './ending.ts'
import { type Flight, type InFlight, Launch } from './flight.ts'
import { type Force, isOverdue } from './force.ts'
import type { Inputs } from './inputs.ts'
import { refusalOf } from './launch-refusal.ts'
import { LaunchRetries } from './launch-retries.ts'
import type { LauncherRecords } from './launcher-records.ts'
import type { Networks } from './networks.ts'
import type { Outputs } from './outputs.ts'
import type { ResultFiles } from './result-files.ts'
import type { SandboxUsers } from './sandbox-users.ts'
import type { Starts } from './start.ts'
import type { Totals } from './totals.ts'
import type { WaitingQueue } from './waiting-queue.ts'

/**
 * Milliseconds without a word after which the record of a launcher counts as that of a running program. The record is
 * there before the program is, so earlier than that the start may still fail.
 */
const UNHEARD_MS = 2_000

/** Milliseconds between two checks for the outcome of a task that runs as far as we have heard. */
const OUTCOME_CHECK_MS = 5_000

export interface DispatcherOptions {
  readonly store: TaskStore
  readonly commit: GroupCommit
  readonly directory: Pick<DirectoryGuard, 'look'>
  readonly ledger: Ledger
  readonly queue: WaitingQueue<LiveTask>
  readonly inFlight: InFlight
  readonly records: LauncherRecords
  readonly starts: Starts
  readonly ends: Ends
  readonly force: Force
  readonly results: ResultFiles
  readonly inputs: Pick<Inputs, 'fill'>
  readonly outputs: Pick<Outputs, 'reduce'>
  readonly networks: Pick<Networks, 'close'>
  /** Undefined where tasks have the user of the service. */
  readonly users: SandboxUsers | undefined
  readonly totals: Pick<Totals, 'started'>
  readonly bootId: string
  /** Milliseconds between TERM and KILL. */
  readonly graceMs: number
  /** Milliseconds for which a launch is tried again that the machine refuses for want of processes or memory. */
  readonly retryMs: number
  readonly log: Log
}

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

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #retries: LaunchRetries
  #isStopping = false

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#retries = new LaunchRetries({ ...options, isStopping: () => this.#isStopping })
  }

  get waitingCount(): number {
    return this.#options.queue.length
  }

  /** Whether a task that comes now may start at once: there is room for it, and no task waits before it. */
  hasRoomFor(asking: Asking): boolean {
    const { queue, ledger, commit } = this.#options
    return !this.#isStopping && commit.fault === undefined && queue.length === 0 && ledger.fitsNow(asking)
  }

  /**
   * Reserves what a task asks for, which must fit. The caller launches the task, or calls `giveBack`. A task with inputs is
   * about to be launched only once it has them.
   */
  reserve(asking: Asking & { readonly task_id: string }, hasInputs: boolean): Reserved {
    const now = Date.now()
    const { task_id, tenant, reservation, isSandboxed = false } = asking
    this.#options.ledger.reserve({ task_id, tenant, reservation, reserved_at: isoTime(now), isSandboxed })
    const sandbox_uid = (isSandboxed ? this.#options.users?.take(task_id) : undefined) ?? null
    return {
      patch: {
        ...{ launch_boot_id: hasInputs ? null : this.#options.bootId, reserved_at: now, released_at: null },
        sandbox_uid,
      },
      events: [{ event_type: 'resource_reserved', message: 'resources reserved', data: reservation, timestamp: now }],
    }
  }

  /** Releases the reservation of a task that is not launched after all. */
  giveBack(taskId: string): void {
    this.#options.users?.giveBack(taskId)
    this.#options.ledger.release(taskId)
    this.startWhatFits()
  }

  /** An accepted task waits for its reservation, or gets it at once. */
  enqueue(task: LiveTask): void {
    this.add(task)
    this.startWhatFits()
  }

  /** A task of an earlier service waits. */
  add(task: LiveTask): void {
    this.#options.queue.add(task)
  }

  /** A waiting task will not start here; `why` is a sentence. */
  giveUp(task: LiveTask, why: string): void {
    const ending: Ending = { status: 'failed', error: { code: 'internal', message: why }, finishedAt: Date.now() }
    this.#inBackground(task, this.#options.ends.writeDown(task, endWithoutReservation(ending)))
  }

  /** A task without a reservation was killed. */
  endKilled(task: LiveTask): void {
    this.#inBackground(task, this.#options.ends.writeDown(task, killedBeforeStart(task, Date.now())))
  }

  /** Starts the waiting tasks for which there is room now. */
  startWhatFits(): void {
    const { queue, commit } = this.#options
    while (!this.#isStopping && commit.fault === undefined) {
      const task = queue.takeNext()
      if (task === undefined) return
      this.#inBackground(task, this.#reserveAndLaunch(task))
    }
  }

  async #reserveAndLaunch(task: LiveTask): Promise<void> {
    const { inFlight, store } = this.#options
    const hasInputs = task.row.inputs !== null
    const reserved = this.reserve(task, hasInputs)
    const flight = inFlight.add(task)
    await store.change(task, reserved)
    await (hasInputs ? this.#fillAndLaunch(flight) : this.#launchAndEnd(flight))
  }

  /** Starts a task that was accepted just now with its reservation. */
  launch(task: LiveTask, request: TaskRequest): void {
    const flight = this.#options.inFlight.add(task)
    const hasInputs = request.inputs !== undefined
    this.#inBackground(task, hasInputs ? this.#fillAndLaunch(flight) : this.#launchAndEnd(flight, request))
  }

  /** Until its inputs are copied, a task looks on disk as if it had never been launched: the next service begins anew. */
  async #fillAndLaunch(flight: Flight): Promise<void> {
    const { inputs, store, bootId } = this.#options
    const { task } = flight
    const isOver = flight.delayed()
    const filled = await inputs.fill(task, () => this.#isStopping)
    if (flight.phase.name === 'delayed') flight.phase.wake()
    await isOver
    if (filled === undefined) return
    if ('ending' in filled) return await this.#end(flight, filled.ending)
    const { patch, events } = filled.change
    await store.change(task, { patch: { ...patch, launch_boot_id: bootId }, events })
    await this.#launchAndEnd(flight)
  }

  /**
   * A task that was killed while its reservation was being written, which takes long on a full disk, is not launched.
   */
  async #launchAndEnd(flight: Flight, request?: TaskRequest): Promise<void> {
    const ending = await this.#retries.run(flight, request)
    if (ending !== undefined) await this.#end(flight, ending)
  }

  /**
   * Takes over a task that an earlier service launched, and whose launcher may be alive. `waitAgain` is called where its launch
   * came to nothing and its reservation has no user for another one.
   */
  adopt(task: LiveTask, isLauncherAlive: boolean, waitAgain: () => void): Flight {
    const { inFlight, records, users } = this.#options
    const flight = inFlight.add(task)
    users?.restore(task)
    const isAlive = () => records.isLauncherAlive(task) ?? flight.phase.name !== 'forced'
    const launch = new Launch(new AdoptedLauncher(isAlive, isLauncherAlive), undefined)
    flight.adopted(launch)
    this.#inBackground(task, this.#endAdopted(flight, launch, isLauncherAlive, waitAgain))
    return flight
  }

  /** A launcher that was alive and has ended without having begun was killed: its task is launched again. */
  async #endAdopted(flight: Flight, launch: Launch, wasAlive: boolean, waitAgain: () => void): Promise<void> {
    await launch.over
    const { ledger, inFlight, records, starts, users, retryMs } = this.#options
    const { task } = flight
    const isUnbegun = wasAlive && flight.phase.name === 'launched' && !records.hasBegun(task)
    const first = isUnbegun ? undefined : await starts.finish(flight, launch)
    const isToLaunch = first === undefined || (retryMs > 0 && refusalOf(first) !== undefined)
    if (isToLaunch && users?.lacks(task)) {
      flight.ending()
      ledger.release(task.task_id)
      inFlight.remove(flight)
      waitAgain()
      return this.startWhatFits()
    }
    const ending = await (first === undefined
      ? this.#retries.runAgain(flight)
      : this.#retries.afterFirst(flight, first, performance.now()))
    if (ending !== undefined) await this.#end(flight, ending)
  }

  /**
   * A safety net: checks for what launchers did not tell. A launcher that was killed tells nothing, a full pipe drops
   * lines, and nobody tells of the end of launchers that an earlier service had started.
   */
  lookAround(): void {
    const { directory, inFlight, results } = this.#options
    if (directory.look() !== undefined) return // running tasks would seem to have no launcher any more
    results.writeAgain()
    for (const flight of inFlight) {
      try {
        this.#lookAt(flight)
      } catch (error) {
        this.#logFault(flight.task, error)
      }
    }
    this.startWhatFits()
  }

  #lookAt(flight: Flight): void {
    const { inFlight, records, force, graceMs } = this.#options
    const { task, launch } = flight
    if (launch === undefined || !launch.launcher.lookAround()) return
    if (isOverdue(flight, graceMs)) void force.end(flight)
    if (flight.phase.name === 'forced') return
    const now = performance.now()
    if (task.row.started_at === null && now - launch.launchedMs > UNHEARD_MS) {
      const started = records.startedProcess(task)
      if (started !== undefined) inFlight.started(flight, started)
    }
    if (now - flight.outcomeCheckedMs <= OUTCOME_CHECK_MS) return
    flight.outcomeCheckedMs = now
    if (records.isThrough(task)) launch.endHeard()
  }

  /**
   * Nothing of the task runs any more. Once its workspace has only its outputs, its reservation is released; others see
   * the end when it is durable.
   */
  async #end(flight: Flight, found: Ending): Promise<void> {
    const { ledger, inFlight, outputs, networks, ends, users, records, totals } = this.#options
    const { task } = flight
    if (found.started !== undefined && task.row.started_at === null) totals.started()
    flight.ending()
    ends.removeSecrets(task) // first: no pattern keeps a file with a secret
    const used = networks.close(task, found)
    const ending = task.outputs === null ? used : await outputs.reduce(task, used)
    await users?.takeBack(task, records.dirOf(task), found.isOver === true)
    ledger.release(task.task_id)
    inFlight.remove(flight)
    const written = ends.writeDown(task, endChange(task, ending))
    this.startWhatFits() // in the same group commit
    await written
  }

  /** Logs a rejection of `work`, which only a defect of ours can cause. */
  #inBackground(task: LiveTask, work: Promise<void>): void {
    work.catch((error) => this.#logFault(task, error))
  }

  #logFault({ task_id }: LiveTask, error: unknown): void {
    this.#options.log.error('a task cannot be looked after', { task_id, cause: messageOf(error) })
  }

  /** No task starts any more. Those in flight go on, whether this service is there or not. */
  stop(): void {
    this.#isStopping = true
  }
}
