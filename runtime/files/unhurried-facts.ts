/** Facts that nobody waits for. They are held back for a moment, because the next one often makes them unnecessary. */

/** Milliseconds that a fact is held back. */
const HELD_BACK_MS = 20

interface UnhurriedFact {
  readonly apply: () => void
  readonly isMoot: () => boolean
}

export class UnhurriedFacts {
  readonly #onDue: () => void
  #facts: UnhurriedFact[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `onDue` should call `take`. */
  constructor(onDue: () => void) {
    this.#onDue = onDue
  }

  add(fact: UnhurriedFact): void {
    this.#facts.push(fact)
    this.#timer ??= setTimeout(this.#onDue, HELD_BACK_MS)
  }

  /** Removes all facts. Returns those that are not moot, in their order. */
  take(): (() => void)[] {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const facts = this.#facts.filter(({ isMoot }) => !isMoot())
    this.#facts = []
    return facts.map(({ apply }) => apply)
  }
}
