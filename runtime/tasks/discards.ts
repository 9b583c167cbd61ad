/** What tasks leave that nobody keeps: moved aside at once, and removed in turn while other tasks go on. */
import { messageOf } from '../../shared/contract/errors.ts'
import { removeTree } from '../files/removal.ts'
import { discard } from '../files/task-dir.ts'
import type { Context } from './context.ts'

type DiscardsContext = Context<'dataDir' | 'log', 'gcIntervalMs'>

export class Discards {
  readonly #context: DiscardsContext
  #last: Promise<void> = Promise.resolve()
  /** Paths of what could not be removed. */
  #left: string[] = []

  constructor(context: DiscardsContext) {
    this.#context = context
  }

  /** Takes what is at `path`, which belongs to a task. What is left when the service ends, its next start removes. */
  take(task_id: string, path: string | Buffer): void {
    const aside = discard(this.#context.dataDir, path)
    this.#remove(aside, (error) => {
      const cause = messageOf(error)
      this.#context.log.warn('cannot remove what a task does not keep yet', { task_id, cause })
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
    }, this.#context.config.gcIntervalMs).unref()
  }
}
