/**
 * The file of callbacks, one JSON object a line: callbacks that wait for delivery, and ids of callbacks that are over
 * while their graph is stored.
 *
 * A line is written before the first try, and synced in the background. A lost line only repeats a delivery, because a
 * start derives missing callbacks from the graphs.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { replaceFile } from '../../shared/files/atomic-file.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { BackgroundSync } from '../log/background-sync.ts'
import { type Delivery, isDelivery, type KeptCallbacks, type StoredCallbacks } from '../log/kept-callbacks.ts'

/** The file is rewritten when it has this many lines more than twice the lines that count. */
const MAX_SPARE_LINES = 10_000

/** Lines written at once. */
const PART = 1_000

export class CallbackFile implements KeptCallbacks {
  readonly #path: string
  readonly #onError: (error: unknown) => void
  readonly #sync: BackgroundSync
  #lines = 0
  #isTorn = false
  /** Lines that were added during a rewrite. */
  #held: string[] | undefined

  /** `onError` gets the errors of the disk. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path
    this.#onError = onError
    this.#sync = new BackgroundSync(path, onError)
  }

  /** The callbacks of an earlier run. Skips unreadable lines. */
  read(): StoredCallbacks {
    const waiting = new Map<string, Delivery>()
    const over = new Map<string, string>()
    if (!existsSync(this.#path)) return { waiting, over }
    const text = readFileSync(this.#path, 'utf8')
    this.#isTorn = text !== '' && !text.endsWith('\n')
    for (const line of text.split('\n')) {
      this.#lines++
      const entry = jsonOrUndefined(line)
      if (isDelivery(entry)) waiting.set(entry.id, entry)
      else if (isObject(entry) && typeof entry.over === 'string' && typeof entry.graphId === 'string') {
        waiting.delete(entry.over)
        over.set(entry.over, entry.graphId)
      }
    }
    return { waiting, over }
  }

  add(delivery: Delivery): void {
    this.#append(`${JSON.stringify(delivery)}\n`)
  }

  /** The callback was delivered, or given up. */
  addOver({ id, graphId }: Delivery): void {
    this.#append(overLine(id, graphId))
  }

  #append(line: string): void {
    if (this.#held !== undefined) {
      this.#held.push(line)
      return
    }
    try {
      appendFileSync(this.#path, `${this.#isTorn ? '\n' : ''}${line}`, { mode: 0o600 })
      this.#isTorn = false
      this.#lines++
      void this.#sync.request()
    } catch (error) {
      this.#isTorn = true
      this.#onError(error)
    }
  }

  /** Whether the file has so many obsolete lines that a rewrite pays. `lines` is the number of lines that count. */
  mayShrink(lines: number): boolean {
    return this.#held === undefined && this.#lines > 2 * lines + MAX_SPARE_LINES
  }

  /** Replaces the content of the file. */
  async rewrite({ waiting, over }: StoredCallbacks): Promise<void> {
    this.#held = []
    const lines = [
      ...Array.from(over, ([id, graphId]) => overLine(id, graphId)),
      ...Array.from(waiting.values(), (delivery) => `${JSON.stringify(delivery)}\n`),
    ]
    try {
      await replaceFile(this.#path, async (file) => {
        for (let i = 0; i < lines.length; i += PART) await file.appendFile(lines.slice(i, i + PART).join(''))
      })
      this.#lines = lines.length
      this.#isTorn = false
    } catch (error) {
      this.#onError(error)
    }
    const held = this.#held
    this.#held = undefined
    for (const line of held) this.#append(line)
  }
}

const overLine = (id: string, graphId: string): string => `${JSON.stringify({ over: id, graphId })}\n`
