/** When the state file is written: every interval in which something changed, and at the end. */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { writeSnapshot } from './snapshot.ts'
import type { TaskStore } from './tasks.ts'

export interface PersistenceOptions {
  readonly store: TaskStore
  readonly dataDir: string
  readonly intervalMs: number
  readonly log: Log
}

export class Persistence {
  readonly #options: PersistenceOptions
  readonly #timer: Timer
  #writtenSeq: number
  #writing: Promise<void> | undefined

  constructor(options: PersistenceOptions) {
    this.#options = options
    this.#writtenSeq = options.store.seq
    this.#timer = setInterval(() => void this.#writeOrLog(), options.intervalMs)
  }

  /** Writes the last state, or throws: then the file still holds the one before. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.#writeIfChanged()
  }

  async #writeOrLog(): Promise<void> {
    if (this.#writing !== undefined) return // a slow disk: the next interval will do
    this.#writing = this.#writeIfChanged().catch((error) => {
      this.#options.log.error('cannot write the state file; it will be tried again', { cause: messageOf(error) })
    })
    await this.#writing
    this.#writing = undefined
  }

  async #writeIfChanged(): Promise<void> {
    const { store, dataDir } = this.#options
    const { seq } = store
    if (seq === this.#writtenSeq) return
    await writeSnapshot(store, dataDir)
    this.#writtenSeq = seq
  }
}
