/** What tasks leave that nobody keeps: moved aside at once, and removed in turn while other tasks go on. */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { removeTree } from '../files/removal.ts'
import { discard } from '../files/task-dir.ts'

export interface DiscardsOptions {
  /** Absolute. */
  readonly dataDir: string
  /** Milliseconds until it is tried again to remove what could not be removed. */
  readonly retryMs: number
  readonly log: Log
}

export class Discards {
  readonly #options: DiscardsOptions
  #last: Promise<void> = Promise.resolve()
  /** Paths of what could not be removed. */
  #left: string[] = []

  constructor(options: DiscardsOptions) {
    this.#options = options
  }

  /** Takes what is at `path`, which belongs to a task. What is left when the service ends, its next start removes. */
  take(task_id: string, path: string | Buffer): void {
    const aside = discard(this.#options.dataDir, path)
    this.#remove(aside, (error) => {
      const cause = messageOf(error)
      this.#options.log.warn('cannot remove what a task does not keep yet', { task_id, cause })
    })
  }

  #remove(aside: string, onFault?: (error: unknown) => void): void {
    this.#last = this.#last
      .then(() => removeTree(aside))
      .catch((error) => {
        this.#retryLater(aside)
        onFault?.(error)
      })
  }

  /** All that is left is tried at the same time. The timer does not keep a service alive. */
  #retryLater(aside: string): void {
    if (this.#left.push(aside) > 1) return
    setTimeout(() => {
      for (const path of this.#left.splice(0)) this.#remove(path)
    }, this.#options.retryMs).unref()
  }
}
