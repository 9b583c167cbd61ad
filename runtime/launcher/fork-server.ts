/**
 * Has launchers started by a fork server (fork-server.h), which costs the service one small write for each.
 *
 * A fork server tells when each launcher that it was asked for is through with its task, or has ended, by `gone`, so all is well
 * as long as it lives. When it ends all the same, the files of each task say how far it came. A launcher that has the task
 * goes on, and is looked at now and then, for nobody will tell of its end if it cannot do so itself. One that was never
 * started is asked for again, of another fork server: the lock of a task is taken before its launcher is forked or passed the
 * request, so with the fork server gone and the lock free, none is on its way.
 *
 * A launcher that was ended before its task had begun is asked for again, too: by a signal, or because it could not take
 * the task and has said nothing of why, as may be with one that has waited for it and that somebody has meddled with. What
 * the first has left is gone by then (fleet.h), or holds the lock for a moment, until which we wait. Whether a task has
 * begun its record says; one that removes that, and then ends, ends its launcher with an exit code that is neither.
 *
 * Each time a launcher is asked for it gets another number, so that a `gone` that is still in the pipe, from another
 * fork server or for an earlier task of the same name, is not taken for its own.
 */
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { launcherArguments } from './arguments.ts'
import type { TaskError } from './classification.ts'
import { explainSpawnFailure } from './faults.ts'
import { ForkServerProcess, type ForkServerSurroundings } from './fork-server-process.ts'
import { type LaunchRequest, launchRequest, MAX_LAUNCH } from './launch-request.ts'
import type { Environment, Launched, LauncherEnd, LauncherHost } from './launcher-host.ts'
import type { LauncherEvent } from './notify.ts'
import type { LaunchPlan } from './plan.ts'
import { isLauncherAlive, readRecord } from './spawn.ts'

/**
 * How often a launcher is asked for. Once would be too few: that a fork server was killed is no fault of the task. For ever
 * would be too often: a request that ends every fork server would keep all others from being read.
 */
const MAX_TRIES = 3

/** The exit code of a launcher that started no task (outcome.h). */
const EXIT_NOT_STARTED = 125

/** Milliseconds for which a lock is waited for that a launcher held which is gone: then what holds it hangs in the kernel. */
const LOCK_PATIENCE_MS = 10_000

/** Milliseconds that the fork server gets, at the end, to start what it was asked for. */
const LAST_LAUNCHES_MS = 1_000

/** A launcher, ready to be asked for. */
interface Order {
  readonly plan: LaunchPlan
  readonly env: Environment
  /** Its number. */
  readonly launch: number
  readonly request: LaunchRequest
}

/** A launcher that was asked for, and that is not through with its task as far as we have heard. */
interface Asked {
  readonly task_id: string
  readonly task_dir: string
  readonly gone: PromiseWithResolvers<LauncherEnd>
  launch: number
  tries: number
  /** To ask for it again; undefined once it has begun. */
  again: Pick<Order, 'plan' | 'env'> | undefined
  /** The launcher has said why it could not begin. */
  hasFault: boolean
  /** Until when its lock is looked at, as nobody will tell that it is free; undefined while its fork server will. */
  watchedUntilMs: number | undefined
}

export class ForkServer implements LauncherHost {
  readonly #surroundings: ForkServerSurroundings
  readonly #log: Log
  /** By task, in the order in which they were asked for. */
  readonly #asked = new Map<string, Asked>()
  /** A service that comes back must not begin with the numbers that an earlier one began with. */
  #lastLaunch = Math.floor(Math.random() * MAX_LAUNCH)
  /** Started when it is needed. */
  #process: ForkServerProcess | undefined
  #isClosed = false

  constructor(surroundings: ForkServerSurroundings, log: Log) {
    this.#surroundings = surroundings
    this.#log = log
  }

  prepare(plan: LaunchPlan, env: Environment): () => Launched {
    const order = this.#order(plan, env)
    return () => this.#launch(order)
  }

  #launch(order: Order): Launched {
    const gone = Promise.withResolvers<LauncherEnd>()
    // The next service finds that this task has not begun, and starts it.
    if (this.#isClosed) return { gone: gone.promise }
    const { task_id, task_dir } = order.plan
    const { plan, env, launch } = order // without the bytes of the request, which are many
    const asked: Asked = {
      ...{ task_id, task_dir, gone, launch, tries: 0, again: { plan, env } },
      ...{ hasFault: false, watchedUntilMs: undefined },
    }
    const error = this.#ask(asked, order)
    if (error !== undefined) return { error }
    this.#asked.set(task_id, asked)
    return { gone: gone.promise }
  }

  heard(event: LauncherEvent): void {
    const asked = this.#asked.get(event.task_id)
    if (asked === undefined) return
    if (event.event === 'started' || event.event === 'ended') asked.again = undefined
    else if (event.event === 'failed') asked.hasFault = true
    else if (event.event === 'gone' && event.launch === asked.launch) this.#afterLauncher(asked, event)
  }

  lookAround(): void {
    const now = performance.now()
    for (const asked of [...this.#asked.values()]) {
      if (asked.watchedUntilMs === undefined) continue
      if (!isAlive(asked)) this.#afterWatch(asked)
      else if (now > asked.watchedUntilMs) this.#end(asked, { error: lockIsHeld })
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#process === undefined) return
    this.#process.close()
    await Promise.race([this.#process.exited, Bun.sleep(LAST_LAUNCHES_MS)])
  }

  #afterLauncher(asked: Asked, { exit_code, is_killed }: { exit_code: number; is_killed: boolean }): void {
    const isNoFaultOfTask = is_killed || (exit_code === EXIT_NOT_STARTED && !asked.hasFault)
    const mayAskAgain = isNoFaultOfTask && asked.again !== undefined && asked.tries < MAX_TRIES && !hasBegun(asked)
    if (!mayAskAgain) this.#end(asked, { exitCode: exit_code })
    // By what it left, and what did not end while its fork server waited for that.
    else if (isAlive(asked)) asked.watchedUntilMs = performance.now() + LOCK_PATIENCE_MS
    else this.#askAgain(asked, asked.again!)
  }

  /** Its lock is free, and its fork server, or its launcher, is gone. */
  #afterWatch(asked: Asked): void {
    asked.watchedUntilMs = undefined
    if (asked.again === undefined || hasBegun(asked)) this.#end(asked, {})
    else if (asked.tries >= MAX_TRIES) this.#end(asked, { error: triedTooOften })
    else this.#askAgain(asked, asked.again)
  }

  #askAgain(asked: Asked, { plan, env }: Pick<Order, 'plan' | 'env'>): void {
    if (this.#isClosed) return // the next service does so
    const error = this.#ask(asked, this.#order(plan, env))
    if (error !== undefined) this.#end(asked, { error })
  }

  #end(asked: Asked, end: LauncherEnd): void {
    this.#asked.delete(asked.task_id)
    asked.gone.resolve(end)
  }

  #order(plan: LaunchPlan, env: Environment): Order {
    this.#lastLaunch = (this.#lastLaunch % MAX_LAUNCH) + 1
    const launch = this.#lastLaunch
    return { plan, env, launch, request: launchRequest(launch, launcherArguments(plan), env) }
  }

  /** Why that is not possible, or undefined. */
  #ask(asked: Asked, { launch, request }: Order): TaskError | undefined {
    asked.launch = launch
    asked.tries++
    asked.hasFault = false
    if ('code' in request) return launchFailed(request.code)
    try {
      this.#process ??= this.#start()
    } catch (error) {
      return launchFailed(systemCodeOf(error) ?? '') ?? { code: 'launch_failed', message: messageOf(error) }
    }
    this.#process.send(request.bytes)
    return undefined
  }

  #start(): ForkServerProcess {
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
    for (const asked of [...this.#asked.values()]) if (asked.watchedUntilMs === undefined) this.#takeUp(asked)
  }

  /** Its fork server has ended. */
  #takeUp(asked: Asked): void {
    if (isAlive(asked)) asked.watchedUntilMs = Number.POSITIVE_INFINITY
    else this.#afterWatch(asked)
  }
}

/**
 * Whether its lock is held. What cannot be asked counts as no: to ask for a launcher once more than needed does no harm, it
 * finds the lock taken.
 */
function isAlive({ task_dir }: Asked): boolean {
  try {
    return isLauncherAlive(task_dir)
  } catch {
    return false
  }
}

function hasBegun({ task_dir }: Asked): boolean {
  try {
    return Object.keys(readRecord(task_dir)).length > 0
  } catch {
    return true // what cannot be read is there
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
