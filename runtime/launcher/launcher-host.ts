/**
 * Whoever starts the launchers of a service. There are two: the fork server for the compiled launcher, and the service itself
 * for the portable one. Whether a launcher lives, and what it did, is asked of its files (spawn.ts), whoever started it.
 */
import type { TaskError } from './classification.ts'
import type { LauncherEvent } from './notify.ts'
import type { LaunchPlan } from './plan.ts'

export type Environment = Readonly<Record<string, string>>

export type Launched =
  | {
      /**
       * Resolves when the launcher is through with the task or gone, in whatever way; never rejects. It may have said
       * `ended` long before.
       */
      readonly gone: Promise<LauncherEnd>
    }
  /** There could be no launcher, for a reason that the task or the machine gave. */
  | { readonly error: TaskError }

export interface LauncherEnd {
  /** 128 + n for signal n. Absent where nobody saw it. */
  readonly exitCode?: number
  /** There was no launcher after all. */
  readonly error?: TaskError
}

export interface LauncherHost {
  /**
   * Gets a launcher for `plan` ready, with `env` as the whole environment of the task. What is returned starts it, once. It
   * may take a moment until there is one. Throws when the directory of the task cannot be used.
   */
  prepare(plan: LaunchPlan, env: Environment): () => Launched
  /** To be called for everything that launchers say. */
  heard(event: LauncherEvent): void
  /** A safety net, to be called now and then: looks for launchers of whose end nobody will hear. */
  lookAround(): void
  /** Starts no launcher from now on. Resolves when those that were asked for are started; they live on. */
  close(): Promise<void>
}
