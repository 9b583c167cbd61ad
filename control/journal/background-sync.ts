/** Syncs a file that lines are appended to, in the background: one sync for all lines of a turn of the event loop. */
import { open } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/errors.ts'
import { nextTurn } from '../../shared/steps.ts'

export class BackgroundSync {
  readonly #path: string
  readonly #onError: (error: unknown) => void
  #isDue = false

  /** `onError` gets the error of the disk. A file that was removed meanwhile is no error. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path
    this.#onError = onError
  }

  /** To be called after each write. */
  async request(): Promise<void> {
    if (this.#isDue) return
    this.#isDue = true
    await nextTurn()
    this.#isDue = false
    try {
      await using file = await open(this.#path, 'r')
      await file.datasync()
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT') this.#onError(error)
    }
  }
}
