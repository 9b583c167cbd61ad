/** The part of a service that starts launchers: a starter, the FIFO, and the lines received so far. */
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { installLauncher } from '../../runtime/launch/embedded.ts'
import { ForkServer } from '../../runtime/launch/fork-server.ts'
import { isLauncherAlive, requestKill } from '../../runtime/launch/launcher-files.ts'
import type { Environment, Launcher, LauncherEnd, LauncherHost } from '../../runtime/launch/launcher-host.ts'
import { type LauncherEvent, NotifyPipe } from '../../runtime/launch/notify.ts'
import type { LaunchPlan } from '../../runtime/launch/plan.ts'
import { ChildLaunchers } from '../../runtime/portable/child-launchers.ts'
import { wrapEnvironment } from '../../runtime/portable/environment.ts'
import { type LauncherVariant, shippedLauncher, taskEnv } from './launchers.ts'
import { type MemoryLog, memoryLog } from './memory-log.ts'
import { childrenOf, gone, linkOf } from './task-processes.ts'
import { type TempDir, tempDir } from './temp.ts'
import { until } from './until.ts'

export interface StartedTask {
  readonly dir: string
  /** Resolves when its launcher is gone. */
  readonly gone: Promise<LauncherEnd>
}

interface LauncherServiceOptions {
  readonly variant?: LauncherVariant
  readonly dataDir?: TempDir
  /** Instead of the launcher. */
  readonly program?: string
  /** Hears what launchers say, after the service. */
  readonly onEvent?: (event: LauncherEvent) => void
  /** Called when the fork server has ended unasked, after the launchers. */
  readonly onServerEnd?: () => void
}

export class LauncherService implements AsyncDisposable {
  readonly path: string
  readonly events: LauncherEvent[] = []
  readonly log: MemoryLog = memoryLog()
  readonly host: LauncherHost
  readonly #dataDir: TempDir
  readonly #pipe: NotifyPipe
  readonly #complaintsFd: number
  readonly #lockFd: number
  readonly #dirs = new Set<string>()
  readonly #launchers = new Map<string, Launcher>()

  constructor({
    variant = shippedLauncher,
    dataDir = tempDir(),
    program,
    onEvent = () => {},
    onServerEnd = () => {},
  }: LauncherServiceOptions = {}) {
    this.#dataDir = dataDir
    this.path = dataDir.path
    this.#pipe = new NotifyPipe(join(this.path, 'notify'), (event) => {
      this.events.push(event)
      this.hear(event)
      onEvent(event)
    })
    this.#complaintsFd = openSync(join(this.path, 'launchers.log'), 'a', 0o600)
    this.#lockFd = openSync(join(this.path, 'lock'), 'a', 0o600)
    const descriptors = { notifyFd: this.#pipe.fd, complaintsFd: this.#complaintsFd }
    const [command, ...args] = variant.command
    this.host = variant.isPortable
      ? new ChildLaunchers({
          program: { command: [command!, ...args], wrapEnvironment, isNative: false },
          ...descriptors,
        })
      : new ForkServer(
          {
            program: program ?? (variant === shippedLauncher ? installLauncher(this.path) : command!),
            ...descriptors,
            directoryLockFd: this.#lockFd,
            env: process.env,
          },
          this.log.log,
          () => {
            for (const launcher of this.#launchers.values()) launcher.serverEnded?.()
            onServerEnd()
          },
        )
  }

  /** Passes an event on, as if a launcher had said it. */
  hear(event: LauncherEvent): void {
    this.#launchers.get(event.task_id)?.heard?.(event)
  }

  lookAround(): void {
    for (const launcher of this.#launchers.values()) launcher.lookAround?.()
  }

  /** The fork server, while there is one: the child of ours that has our pipe. */
  get forkServerPid(): number | undefined {
    return childrenOf(process.pid).find((pid) => linkOf(`/proc/${pid}/fd/3`) === join(this.path, 'notify'))
  }

  planOf(task_id: string, command: LaunchPlan['command']): LaunchPlan {
    const task_dir = join(this.path, task_id)
    mkdirSync(task_dir, { recursive: true })
    this.#dirs.add(task_dir)
    const limits = { wall_time_ms: 60_000, grace_ms: 10_000, max_output_bytes: 1e9 }
    return { task_id, task_dir, workdir: task_dir, command, ...limits }
  }

  /** Starts a launcher; fails when there could be none. */
  start(task_id: string, command: LaunchPlan['command'], env: Environment = taskEnv): StartedTask {
    const plan = this.planOf(task_id, command)
    return this.startPlan(plan, env)
  }

  /** The same for a plan of one's own. */
  startPlan(plan: LaunchPlan, env: Environment = taskEnv): StartedTask {
    const launched = this.host.launch(plan, env)
    if ('error' in launched) throw new Error(launched.error.message)
    this.#launchers.set(plan.task_id, launched.launcher)
    return { dir: plan.task_dir, gone: launched.launcher.gone }
  }

  complaints(): string {
    return readFileSync(join(this.path, 'launchers.log'), 'utf8')
  }

  /** The event of a task, once it was heard. */
  async said<E extends LauncherEvent['event']>(event: E, task_id: string) {
    type Said = Extract<LauncherEvent, { event: E }>
    const find = () => this.events.find((heard): heard is Said => heard.event === event && heard.task_id === task_id)
    return (await until(find, (found) => found !== undefined))!
  }

  /** Tasks outlive their service; those of a test must not. */
  async #endTasks(): Promise<void> {
    await until(
      () => [...this.#dirs].filter((dir) => isLauncherAlive(dir) && (requestKill(dir) || true)),
      (alive) => alive.length === 0,
    )
  }

  async [Symbol.asyncDispose]() {
    const pid = this.forkServerPid
    await this.host.close()
    if (pid !== undefined) await gone(pid)
    await this.#endTasks()
    await this.#pipe.close()
    closeSync(this.#complaintsFd)
    closeSync(this.#lockFd)
    this.#dataDir[Symbol.dispose]()
  }
}
