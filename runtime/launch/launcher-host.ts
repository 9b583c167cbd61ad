/**
 * Starting the launchers of a service. There are two hosts: a fork server for the compiled launcher, and the service
 * itself for the portable one. Whether a launcher lives, and what it did, its files say, whichever host started it.
 *
 * A host keeps no list of its launchers: the service has one already, and passes on what concerns each of them.
 */
import type { TaskError } from './classification.ts'
import type { LauncherEvent } from './notify.ts'
import type { LaunchPlan } from './plan.ts'

export type Environment = Readonly<Record<string, string>>

/**
 * A launcher that was asked for. It may take a moment until it runs. One whose end the system tells needs no more than
 * `gone`.
 */
export interface Launcher {
  /**
   * Resolves once the launcher has ended, for whatever reason. Never rejects. The launcher may have said `ended`
   * before.
   */
  readonly gone: Promise<LauncherEnd>
  /** To be called for each event of its task. */
  heard?(event: LauncherEvent): void
  /** A safety net, to be called now and then. False once the launcher is gone, and then `gone` resolves. */
  lookAround?(): boolean
  /** To be called when the process that starts launchers has ended unasked. */
  serverEnded?(): void
}

export type Launched =
  | { readonly launcher: Launcher }
  /** There could be no launcher, for a reason that lies in the task or the machine. */
  | { readonly error: TaskError }

export interface LauncherEnd {
  /** 128 + n for signal n. Absent where nobody saw it. */
  readonly exitCode?: number
  /** There was no launcher after all. */
  readonly error?: TaskError
}

export interface LauncherHost {
  /**
   * Asks for a launcher for `plan`, with `env` as the whole environment of the task. Throws when the directory of the task
   * cannot be used.
   */
  launch(plan: LaunchPlan, env: Environment): Launched
  /** Starts no launcher from now on. Resolves once those that were asked for are started. They live on. */
  close(): Promise<void>
}
