/** Removes staged bundles that no task has used for some time, now and then. */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { DirectoryGuard } from '../files/directory-guard.ts'
import type { StagedFiles } from '../files/staged-files.ts'
import type { LiveTask } from '../store/live-task.ts'

export interface StagedRetentionOptions {
  readonly staged: Pick<StagedFiles, 'sweep'>
  readonly directory: Pick<DirectoryGuard, 'look'>
  readonly retentionSecs: number
  readonly intervalMs: number
  readonly log: Log
}

export class StagedRetention {
  readonly #options: StagedRetentionOptions
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: StagedRetentionOptions) {
    this.#options = options
  }

  /** Sweeps now, and again and again. */
  start(): void {
    this.#sweep()
    this.#timer = setInterval(() => this.#sweep(), this.#options.intervalMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #sweep(): void {
    const { staged, directory, retentionSecs, log } = this.#options
    if (directory.look() !== undefined) return
    try {
      const removed = staged.sweep(Date.now() - retentionSecs * 1000)
      if (removed > 0) log.info('staged files removed that are kept no longer', { removed })
    } catch (error) {
      log.error('cannot remove staged files that are kept no longer', { cause: messageOf(error) })
    }
  }
}

/** Hashes of the bundles that tasks take when they start. */
export function stagedForTasks(live: Iterable<Pick<LiveTask, 'row'>>): ReadonlySet<string> {
  const needed = new Set<string>()
  for (const { row } of live) {
    if (row.inputs === null || row.started_at !== null) continue
    for (const { staged } of Object.values(JSON.parse(row.inputs) as Record<string, { staged?: string }>)) {
      if (staged !== undefined) needed.add(staged)
    }
  }
  return needed
}
