/** Writes texts one after the other, and drops them while nobody takes any. */

type Text = string | Uint8Array

const NEWLINE = 10

export class PatientTexts {
  readonly #writeText: (text: Text) => Promise<void>
  readonly #stallMs: number | undefined
  readonly #waiting: Text[] = []
  #writing: Promise<void> | undefined
  /** Resolves once the text that is being written is given up. */
  #stall: Promise<void> | undefined
  #isStalled = false
  #dropped = 0

  /** Texts are dropped while one takes longer than `stallMs` milliseconds; never if that is undefined. */
  constructor(writeText: (text: Text) => Promise<void>, stallMs: number | undefined) {
    this.#writeText = writeText
    this.#stallMs = stallMs
  }

  /** Whether texts are waiting for the reader. */
  get isBusy(): boolean {
    return this.#writing !== undefined && !this.#isStalled
  }

  write(text: Text): void {
    if (this.#isStalled) {
      this.#dropped += linesIn(text)
      return
    }
    this.#waiting.push(text)
    this.#writing ??= this.#writeWaiting()
  }

  /** Resolves once all that was written is taken, or dropped. */
  async drained(): Promise<void> {
    while (this.isBusy) await Promise.race([this.#writing, this.#stall])
  }

  async #writeWaiting(): Promise<void> {
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      await this.#patiently(text)
      if (this.#dropped === 0) continue
      const lines = this.#dropped === 1 ? '1 line is' : `${this.#dropped} lines are`
      this.#waiting.unshift(`taskmill: ${lines} not shown: nobody read standard error\n`)
      this.#dropped = 0
    }
    this.#writing = undefined
  }

  async #patiently(text: Text): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#stall = promise
    const giveUp = () => {
      this.#isStalled = true
      for (const other of this.#waiting.splice(0)) this.#dropped += linesIn(other)
      resolve()
    }
    const timer = this.#stallMs === undefined ? undefined : setTimeout(giveUp, this.#stallMs)
    await this.#writeText(text).catch(() => {}) // the reader is gone; the command goes on
    clearTimeout(timer)
    this.#isStalled = false
  }
}

function linesIn(text: Text): number {
  let lines = 0
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text
  for (const byte of bytes) if (byte === NEWLINE) lines++
  return Math.max(1, lines)
}
