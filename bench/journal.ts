/**
 * The log of the floor servers: every line is on the disk before its request is answered.
 *
 * All lines that arrive during one `fdatasync` share the next one.
 */
import { fdatasync, openSync, writeSync } from 'node:fs'

export class Journal {
  readonly #file: number
  #lines: string[] = []
  #waiting: (() => void)[] = []
  #isSyncing = false

  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  /** Resolves once the line is on the disk. */
  append(line: string): Promise<void> {
    return new Promise((resolve) => {
      this.#lines.push(line)
      this.#waiting.push(resolve)
      if (!this.#isSyncing) this.#sync()
    })
  }

  #sync(): void {
    this.#isSyncing = true
    // Whatever else this turn of the event loop brings in goes along.
    setImmediate(() => {
      const done = this.#waiting
      writeSync(this.#file, this.#lines.join(''))
      this.#lines = []
      this.#waiting = []
      fdatasync(this.#file, (error) => {
        if (error !== null) throw error
        this.#isSyncing = false
        for (const resolve of done) resolve()
        if (this.#waiting.length > 0 && !this.#isSyncing) this.#sync()
      })
    })
  }
}
