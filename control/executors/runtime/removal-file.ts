/**
 * The file of tasks that the runtime service is still to remove: one JSON array `[id, owner | null, since]` a line.
 *
 * A few entries are written before anything else happens, so a deletion that was answered survives SIGKILL. Many are
 * written in the background and in parts, so that neither a caller nor the event loop waits for a hundred thousand.
 * Syncs run in the background. Finished entries stay until the file is rewritten: removing a task twice does no harm. A
 * power cut can lose the last entries; the retention of the runtime service then removes their tasks.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { replaceFile } from '../../../shared/atomic-file.ts'
import { nextTurn } from '../../../shared/steps.ts'
import { BackgroundSync } from '../../journal/background-sync.ts'

export interface Removal {
  /** The task id in the runtime service. */
  readonly id: string
  readonly owner: string | undefined
  /** When it was asked for; milliseconds since 1970. */
  readonly since: number
}

/** Finished entries that the file may hold before it is rewritten without them. */
const MAX_FINISHED = 10_000

/** Entries that are written at once: about a millisecond of work. */
const PART = 1_000

export class RemovalFile {
  readonly #path: string
  readonly #onError: (error: unknown) => void
  readonly #sync: BackgroundSync
  /** Lines in the file. */
  #length = 0
  /** The last line has no end: the next entry would become a part of it. */
  #isTorn = false
  /** Entries that are not in the file yet. */
  #unwritten: Removal[] = []
  /** The last change of the file that was asked for. It does not reject. */
  #changing: Promise<void> = Promise.resolve()
  /** Changes of the file that are not done yet. */
  #changes = 0

  /** `onError` gets the errors of the disk. A refused entry is lost at the next restart. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path
    this.#onError = onError
    this.#sync = new BackgroundSync(path, onError)
  }

  /** The entries of an earlier run, without a torn last line or any other line that is not an entry. */
  read(): Removal[] {
    if (!existsSync(this.#path)) return []
    const text = readFileSync(this.#path, 'utf8')
    const lines = text.split('\n')
    this.#length = lines.length - 1
    this.#isTorn = text !== '' && !text.endsWith('\n')
    return lines.flatMap((line) => removalOf(line) ?? [])
  }

  append(removal: Removal): void {
    if (this.#unwritten.length === 0) queueMicrotask(() => this.#takeUnwritten())
    this.#unwritten.push(removal)
  }

  /** Runs when the caller's code has ended, before its answer leaves. */
  #takeUnwritten(): void {
    if (this.#unwritten.length === 0) return // a change that was under way has written them
    if (this.#changes > 0 || this.#unwritten.length > PART) {
      void this.#change(() => this.#appendUnwritten())
      return
    }
    const text = `${this.#isTorn ? '\n' : ''}${this.#unwritten.map(lineOf).join('')}`
    this.#length += this.#unwritten.length
    this.#unwritten = []
    this.#isTorn = true // until all of it is there
    try {
      appendFileSync(this.#path, text, { mode: 0o600 })
      this.#isTorn = false
      void this.#sync.request()
    } catch (error) {
      this.#onError(error)
    }
  }

  /**
   * Leaves out finished entries where there are many; `open` are all that are not finished, also while this goes on.
   */
  compact(open: ReadonlyMap<string, Removal>): Promise<void> {
    return this.#change(async () => {
      if (this.#length === 0) return
      if (open.size === 0) {
        await rm(this.#path, { force: true })
        this.#length = 0
        this.#isTorn = false
      } else if (this.#length - open.size >= Math.max(MAX_FINISHED, open.size)) {
        let length = 0
        await replaceFile(this.#path, async (file) => {
          length = await writeLines(file, open.values())
        })
        this.#length = length
        this.#isTorn = false
      }
    })
  }

  /** One change after the other. */
  #change(change: () => Promise<void>): Promise<void> {
    this.#changes++
    this.#changing = this.#changing
      .then(change)
      .catch(this.#onError)
      .finally(() => {
        this.#changes--
      })
    return this.#changing
  }

  async #appendUnwritten(): Promise<void> {
    await nextTurn() // entries come by the thousand
    const removals = this.#unwritten
    this.#unwritten = []
    await using file = await open(this.#path, 'a', 0o600)
    if (this.#isTorn) await file.appendFile('\n')
    this.#isTorn = true // until all of it is there
    this.#length += await writeLines(file, removals.values())
    this.#isTorn = false
    await file.datasync()
  }
}

/** Writes at the end of `file`; the number of lines. */
async function writeLines(file: FileHandle, removals: Iterator<Removal>): Promise<number> {
  let length = 0
  for (;;) {
    let text = ''
    for (let i = 0; i < PART; i++) {
      const next = removals.next()
      if (next.done) {
        await file.appendFile(text)
        return length
      }
      text += lineOf(next.value)
      length++
    }
    await file.appendFile(text)
  }
}

const lineOf = ({ id, owner, since }: Removal): string => `${JSON.stringify([id, owner ?? null, since])}\n`

function removalOf(line: string): Removal | undefined {
  try {
    const [id, owner, since] = JSON.parse(line) as unknown[]
    if (typeof id !== 'string' || typeof since !== 'number') return undefined
    return { id, owner: typeof owner === 'string' ? owner : undefined, since }
  } catch {
    return undefined
  }
}
