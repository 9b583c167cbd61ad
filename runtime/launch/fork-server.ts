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
 * Each request has a number of its own. So a `gone` that is still in the pipe, from another fork server or for an
 * earlier task with the same id, is not taken for this launcher's.
 */
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { launcherArguments } from './arguments.ts'
import type { TaskError } from './classification.ts'
import { explainSpawnFailure } from './faults.ts'
import { ForkServerProcess, type ForkServerSurroundings } from './fork-server-process.ts'
import { launchRequest, MAX_LAUNCH } from './launch-request.ts'
import { hasBegun, hasLauncher } from './launcher-files.ts'
import type { Environment, Launched, Launcher, LauncherEnd, LauncherHost } from './launcher-host.ts'
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

/** What a launcher is asked for with. */
interface Order {
  readonly plan: LaunchPlan
  readonly env: Environment
}

export class ForkServer implements LauncherHost {
  readonly #surroundings: ForkServerSurroundings
  readonly #log: Log
  /** Random at first: a restarted service must not repeat the numbers of the earlier one. */
  #lastLaunch = Math.floor(Math.random() * MAX_LAUNCH)
  /** Started on demand. */
  #process: ForkServerProcess | undefined
  #isClosed = false
  readonly #onEnd: () => void

  /** `onEnd` is called when the process of the fork server has ended unasked. */
  constructor(surroundings: ForkServerSurroundings, log: Log, onEnd: () => void) {
    this.#surroundings = surroundings
    this.#log = log
    this.#onEnd = onEnd
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  launch(plan: LaunchPlan, env: Environment): Launched {
    const order = { plan, env }
    const launcher = new ForkedLauncher(this, order)
    // A task of a stopping service has not begun for the next service, which starts it.
    const error = this.#isClosed ? undefined : launcher.ask(order)
    return error === undefined ? { launcher } : { error }
  }

  /** For launchers of this fork server. Returns the number of the launch, or why it cannot be asked for. */
  ask({ plan, env }: Order): { readonly launch: number } | { readonly error: TaskError } {
    this.#lastLaunch = (this.#lastLaunch % MAX_LAUNCH) + 1
    const launch = this.#lastLaunch
    const request = launchRequest(launch, launcherArguments(plan), env)
    if ('code' in request) return { error: launchFailed(request.code) }
    try {
      this.#process ??= this.#startProcess()
    } catch (error) {
      return { error: launchFailed(systemCodeOf(error) ?? '', messageOf(error)) }
    }
    this.#process.send(request.bytes)
    return { launch }
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
    if (this.#isClosed) return
    this.#log.warn('the process that starts launchers ended: another takes its place (see launchers.log)', {
      exit_code: exitCode,
    })
    this.#onEnd()
  }
}

/** Who tells that a launcher has ended. */
type Phase =
  /** The fork server will, by the number of the launch. */
  | { readonly name: 'asked' }
  /** Nobody: the lock is checked, until then. */
  | { readonly name: 'watched'; readonly untilMs: number }
  /** It is told. */
  | { readonly name: 'gone' }

const ASKED: Phase = { name: 'asked' }

/** A launcher that a fork server was asked for. */
class ForkedLauncher implements Launcher {
  readonly #server: ForkServer
  readonly #taskDir: string
  readonly #gone = Promise.withResolvers<LauncherEnd>()
  #launch = 0
  #tries = 0
  /** What to repeat the request with. Undefined once the task has begun. */
  #order: Order | undefined
  #phase: Phase = ASKED

  constructor(server: ForkServer, order: Order) {
    this.#server = server
    this.#taskDir = order.plan.task_dir
    this.#order = order
  }

  get gone(): Promise<LauncherEnd> {
    return this.#gone.promise
  }

  heard(event: LauncherEvent): void {
    if (event.event === 'started' || event.event === 'ended') this.#order = undefined
    else if (event.event === 'gone' && event.launch === this.#launch && !this.#isGone) this.#afterLauncher(event)
  }

  lookAround(): boolean {
    if (this.#phase.name === 'watched') {
      if (!this.#isLockHeld()) this.#afterWatch()
      else if (performance.now() > this.#phase.untilMs) this.#end({ error: lockIsHeld })
    }
    return !this.#isGone
  }

  serverEnded(): void {
    if (this.#phase.name !== 'asked') return
    if (this.#isLockHeld()) this.#phase = { name: 'watched', untilMs: Number.POSITIVE_INFINITY }
    else this.#afterWatch()
  }

  get #isGone(): boolean {
    return this.#phase.name === 'gone'
  }

  /** Why that is not possible, or undefined. */
  ask(order: Order): TaskError | undefined {
    this.#tries++
    const asked = this.#server.ask(order)
    if ('error' in asked) return asked.error
    this.#launch = asked.launch
    return undefined
  }

  #afterLauncher({ exit_code, is_killed }: { exit_code: number; is_killed: boolean }): void {
    const order = is_killed && this.#tries < MAX_TRIES && !hasBegun(this.#taskDir) ? this.#order : undefined
    if (order === undefined) this.#end({ exitCode: exit_code })
    // The launcher left a process that did not end while the fork server waited for it.
    else if (this.#isLockHeld()) this.#phase = { name: 'watched', untilMs: performance.now() + LOCK_PATIENCE_MS }
    else this.#askAgain(order)
  }

  /** The lock is free, and the fork server or the launcher is gone. */
  #afterWatch(): void {
    this.#phase = ASKED
    if (this.#order === undefined || hasBegun(this.#taskDir)) this.#end({})
    else if (this.#tries >= MAX_TRIES) this.#end({ error: triedTooOften })
    else this.#askAgain(this.#order)
  }

  #askAgain(order: Order): void {
    if (this.#server.isClosed) return // the next service does so
    const error = this.ask(order)
    if (error !== undefined) this.#end({ error })
  }

  #end(end: LauncherEnd): void {
    this.#phase = { name: 'gone' }
    this.#gone.resolve(end)
  }

  /** False where the lock cannot be checked: a second launcher does no harm, it finds the lock taken. */
  #isLockHeld(): boolean {
    return hasLauncher(this.#taskDir, false)
  }
}

/** `message` is for a code that nothing explains. */
const launchFailed = (code: string, message = code): TaskError => ({
  code: 'launch_failed',
  ...(explainSpawnFailure(code) ?? { message }),
})

const triedTooOften: TaskError = {
  code: 'launch_failed',
  message: `cannot start the task: the process that starts launchers ended each of ${MAX_TRIES} times (see launchers.log in the data directory)`,
}

const lockIsHeld: TaskError = {
  code: 'launch_failed',
  message: `cannot start the task: its launcher was killed, and what that left does not end within ${LOCK_PATIENCE_MS / 1_000} s (it hangs in the kernel: check the disks and mounts of the host)`,
}
