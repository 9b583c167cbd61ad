/** Syncs an append-only file in the background. All lines of one turn of the event loop share a sync. */
import { open } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { nextTurn } from '../../shared/process/steps.ts'

export class BackgroundSync {
  readonly #path: string
  readonly #onError: (error: unknown) => void
  #isDue = false

  /** `onError` gets errors of the disk, except that the file is missing. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path
    this.#onError = onError
  }

  /** Schedules a sync. Callers call it after each write. */
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
