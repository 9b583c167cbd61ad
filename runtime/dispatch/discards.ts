/** What tasks leave that nobody keeps: moved aside at once, and removed in turn while other tasks go on. */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { removeTree } from '../store/removal.ts'
import { discard } from '../store/task-dir.ts'

export class Discards {
  readonly #dataDir: string
  readonly #log: Log
  #last: Promise<void> = Promise.resolve()

  /** `dataDir` is absolute. */
  constructor(dataDir: string, log: Log) {
    this.#dataDir = dataDir
    this.#log = log
  }

  /** Takes what is at `path`, which belongs to a task. What is left when the service ends, its next start removes. */
  take(task_id: string, path: string | Buffer): void {
    const aside = discard(this.#dataDir, path)
    this.#last = this.#last
      .then(() => removeTree(aside))
      .catch((error) => {
        const cause = messageOf(error)
        this.#log.warn('cannot remove what a task does not keep before the next start', { task_id, cause })
      })
  }
}
