/**
 * Has launchers started by a fork server (fork-server.h), which costs the service one small write for each.
 *
 * The fork server says `gone` for each launcher that has ended. It never fails to, as long as it lives. When it ends,
 * the files of each task say how far its launch came:
 *
 * - The lock of the task is held: its launcher goes on. Nobody will tell of its end if it cannot do so itself, so the
 *   lock is checked now and then.
 * - The lock is free: it is taken before a launcher is forked, so none is on its way. If the task has not begun, the
 *   next fork server is asked for its launcher.
 *
 * A launcher that a signal killed before its task had begun is asked for again, too. What the first launcher left is
 * gone by then (job-table.h), or holds the lock for a moment longer; we wait for that. The record of a task says
 * whether the task has begun. A task that removes its record and then ends makes its launcher exit with a code, not by
 * a signal.
 *
 * A launcher is prepared while the acceptance of its task is being synced: the fork server forks it at once, and holds it
 * (hold.h) until it is started or discarded. Of a held launcher no line comes. If the fork server ends meanwhile, its held
 * launchers end too, and those that are to be started are asked for again.
 *
 * Each request has a number of its own. So a `gone` that is still in the pipe, from another fork server or for an
 * earlier task with the same id, is not taken for this launcher's.
 */
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { launcherArguments } from './arguments.ts'
import type { TaskError } from './classification.ts'
import { explainSpawnFailure } from './faults.ts'
import { ForkServerProcess, type ForkServerSurroundings } from './fork-server-process.ts'
import { type LaunchRequest, launchRequest, MAX_LAUNCH, wordOnLaunch } from './launch-request.ts'
import { hasLauncher, readRecord } from './launcher-files.ts'
import type { Environment, Launched, Launcher, LauncherEnd, LauncherHost, PreparedLauncher } from './launcher-host.ts'
import type { LauncherEvent } from './notify.ts'
import type { LaunchPlan } from './plan.ts'

/**
 * How often a launcher is asked for. Once is too few: a task is not to blame for a killed fork server. Without a limit,
 * a request that ends every fork server would keep all others from being read.
 */
const MAX_TRIES = 3

/** Milliseconds to wait for the lock of a launcher that is gone. A process that holds it longer hangs in the kernel. */
const LOCK_PATIENCE_MS = 10_000

/** Milliseconds that the fork server gets, when the service stops, to start what it was asked for. */
const LAST_LAUNCHES_MS = 1_000

/** Launches that are held at a time. Where more are under way, they wait for processors rather than for the disk. */
export const MAX_HELD = 8

/** Milliseconds to wait for a discarded launcher. It can no longer start anything, only be in the way. */
const DISCARD_MS = 1_000

/** A request for a launcher, ready to be sent. */
interface Order {
  readonly plan: LaunchPlan
  readonly env: Environment
  readonly launch: number
  readonly request: LaunchRequest
}

type Retry = Pick<Order, 'plan' | 'env'>

export class ForkServer implements LauncherHost {
  readonly #surroundings: ForkServerSurroundings
  readonly #log: Log
  /** Random at first: a restarted service must not repeat the numbers of the earlier one. */
  #lastLaunch = Math.floor(Math.random() * MAX_LAUNCH)
  /** Started on demand. */
  #process: ForkServerProcess | undefined
  /** The launches that it holds. */
  readonly #held = new Set<number>()
  /** Called when nothing is left of a discarded launch, by its number. */
  readonly #discards = new Map<number, () => void>()
  #isClosed = false
  onServerEnd = (): void => {}

  constructor(surroundings: ForkServerSurroundings, log: Log) {
    this.#surroundings = surroundings
    this.#log = log
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  prepare(plan: LaunchPlan, env: Environment): PreparedLauncher {
    if (this.#isClosed || this.#held.size >= MAX_HELD) {
      const order = this.order(plan, env, 'launch')
      return { start: () => this.#start(order, (launcher) => launcher.ask(order)), discard: async () => {} }
    }
    const order = this.order(plan, env, 'hold')
    const error = this.send(order.request)
    if (error !== undefined) return { start: () => ({ error }), discard: async () => {} }
    const { launch } = order
    this.#held.add(launch)
    let discarded: Promise<void> | undefined
    return {
      start: () => this.#start(order, (launcher) => launcher.release(launch, this.#sendWord(launch, 'release'))),
      discard: () => (discarded ??= this.#discard(launch)),
    }
  }

  #start(order: Order, begin: (launcher: ForkedLauncher) => TaskError | undefined): Launched {
    const launcher = new ForkedLauncher(this, order)
    // A task of a stopping service has not begun for the next service, which starts it.
    const error = this.#isClosed ? undefined : begin(launcher)
    return error === undefined ? { launcher } : { error }
  }

  /** False if the fork server that held the launch has ended. One that is closed discards what it holds by itself. */
  #sendWord(launch: number, word: 'release' | 'discard'): boolean {
    const isHeld = this.#held.delete(launch)
    if (isHeld && !this.#isClosed) this.#process?.send(wordOnLaunch(launch, word))
    return isHeld
  }

  async #discard(launch: number): Promise<void> {
    const gone = Promise.withResolvers<void>()
    this.#discards.set(launch, gone.resolve)
    if (this.#sendWord(launch, 'discard')) {
      const timer = setTimeout(gone.resolve, DISCARD_MS)
      await gone.promise
      clearTimeout(timer)
    }
    this.#discards.delete(launch)
  }

  heard(event: LauncherEvent): void {
    if (event.event === 'gone') this.#discards.get(event.launch)?.()
  }

  /** For launchers of this fork server. */
  order(plan: LaunchPlan, env: Environment, kind: 'launch' | 'hold'): Order {
    this.#lastLaunch = (this.#lastLaunch % MAX_LAUNCH) + 1
    const launch = this.#lastLaunch
    return { plan, env, launch, request: launchRequest(launch, launcherArguments(plan), env, kind) }
  }

  /** For launchers of this fork server. Returns why the request cannot be sent, or undefined. */
  send(request: LaunchRequest): TaskError | undefined {
    if ('code' in request) return launchFailed(request.code)
    try {
      this.#process ??= this.#startProcess()
    } catch (error) {
      return launchFailed(systemCodeOf(error) ?? '') ?? { code: 'launch_failed', message: messageOf(error) }
    }
    this.#process.send(request.bytes)
    return undefined
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#process === undefined) return
    this.#process.close()
    await Promise.race([this.#process.exited, Bun.sleep(LAST_LAUNCHES_MS)])
  }

  #startProcess(): ForkServerProcess {
    const started = new ForkServerProcess(this.#surroundings)
    void started.exited.then((exitCode) => this.#afterForkServer(exitCode))
    return started
  }

  #afterForkServer(exitCode: number): void {
    this.#process = undefined
    this.#held.clear()
    for (const gone of this.#discards.values()) gone()
    if (this.#isClosed) return
    this.#log.warn('the process that starts launchers ended: another takes its place (see launchers.log)', {
      exit_code: exitCode,
    })
    this.onServerEnd()
  }
}

/** A launcher that a fork server was asked for. */
class ForkedLauncher implements Launcher {
  readonly #server: ForkServer
  readonly #taskDir: string
  readonly #gone = Promise.withResolvers<LauncherEnd>()
  #launch = 0
  #tries = 0
  /** The data to repeat the request. Undefined once the task has begun. */
  #retry: Retry | undefined
  /** Until when the lock is checked, as nobody will tell that it is free. Undefined while the fork server will. */
  #watchedUntilMs: number | undefined
  #isGone = false

  /** `order` is kept without the bytes of its request, which are many. */
  constructor(server: ForkServer, { plan, env }: Order) {
    this.#server = server
    this.#taskDir = plan.task_dir
    this.#retry = { plan, env }
  }

  get gone(): Promise<LauncherEnd> {
    return this.#gone.promise
  }

  heard(event: LauncherEvent): void {
    if (event.event === 'started' || event.event === 'ended') this.#retry = undefined
    else if (event.event === 'gone' && event.launch === this.#launch && !this.#isGone) this.#afterLauncher(event)
  }

  lookAround(): boolean {
    if (this.#watchedUntilMs === undefined) return !this.#isGone
    if (!this.#isLockHeld()) this.#afterWatch()
    else if (performance.now() > this.#watchedUntilMs) this.#end({ error: lockIsHeld })
    return !this.#isGone
  }

  serverEnded(): void {
    if (this.#isGone || this.#watchedUntilMs !== undefined) return
    if (this.#isLockHeld()) this.#watchedUntilMs = Number.POSITIVE_INFINITY
    else this.#afterWatch()
  }

  /** Why that is not possible, or undefined. */
  ask({ launch, request }: Order): TaskError | undefined {
    this.#launch = launch
    this.#tries++
    return this.#server.send(request)
  }

  /** `isHeld`: whether the fork server that held this launch was told to release it. */
  release(launch: number, isHeld: boolean): undefined {
    this.#launch = launch
    this.#tries++
    if (!isHeld) this.serverEnded()
  }

  #afterLauncher({ exit_code, is_killed }: { exit_code: number; is_killed: boolean }): void {
    const retry = is_killed && this.#tries < MAX_TRIES && !this.#hasBegun() ? this.#retry : undefined
    if (retry === undefined) this.#end({ exitCode: exit_code })
    // The launcher left a process that did not end while the fork server waited for it.
    else if (this.#isLockHeld()) this.#watchedUntilMs = performance.now() + LOCK_PATIENCE_MS
    else this.#askAgain(retry)
  }

  /** The lock is free, and the fork server or the launcher is gone. */
  #afterWatch(): void {
    this.#watchedUntilMs = undefined
    if (this.#retry === undefined || this.#hasBegun()) this.#end({})
    else if (this.#tries >= MAX_TRIES) this.#end({ error: triedTooOften })
    else this.#askAgain(this.#retry)
  }

  #askAgain({ plan, env }: Retry): void {
    if (this.#server.isClosed) return // the next service does so
    const error = this.ask(this.#server.order(plan, env, 'launch'))
    if (error !== undefined) this.#end({ error })
  }

  #end(end: LauncherEnd): void {
    this.#isGone = true
    this.#watchedUntilMs = undefined
    this.#gone.resolve(end)
  }

  /** False where the lock cannot be checked: a second launcher does no harm, it finds the lock taken. */
  #isLockHeld(): boolean {
    return hasLauncher(this.#taskDir, false)
  }

  #hasBegun(): boolean {
    try {
      return Object.keys(readRecord(this.#taskDir)).length > 0
    } catch {
      return true // a record that cannot be read is there
    }
  }
}

function launchFailed(code: string): TaskError | undefined {
  const explained = explainSpawnFailure(code)
  return explained === undefined ? undefined : { code: 'launch_failed', ...explained }
}

const triedTooOften: TaskError = {
  code: 'launch_failed',
  message: `cannot start the task: the process that starts launchers ended each of ${MAX_TRIES} times (see launchers.log in the data directory)`,
}

const lockIsHeld: TaskError = {
  code: 'launch_failed',
  message: `cannot start the task: its launcher was killed, and what that left does not end within ${LOCK_PATIENCE_MS / 1_000} s (it hangs in the kernel: check the disks and mounts of the host)`,
}
