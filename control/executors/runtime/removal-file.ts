/**
 * The file of unfinished removals from runtime services, with one JSON array `[id, owner | null, since, runtime?]` per
 * line. Without a runtime service, it is `default`.
 *
 * A few entries are written synchronously, so an acknowledged deletion survives SIGKILL. Many entries are written in
 * the background and in parts, so that neither a caller nor the event loop waits for a hundred thousand of them. Syncs
 * run in the background. Finished entries stay until the file is rewritten, because to remove a task twice does no
 * harm. A power cut can lose the last entries; then the retention of the runtime service removes their tasks.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { replaceFile } from '../../../shared/files/atomic-file.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { BackgroundSync } from '../../log/background-sync.ts'

export interface Removal {
  /** The task id in the runtime service. */
  readonly id: string
  readonly owner: string | undefined
  /** Time of the deletion, in milliseconds since 1970. */
  readonly since: number
  /** The name of the runtime service that has the task. Absent: `default`. */
  readonly runtime?: string | undefined
}

/** Maximum finished entries in the file. With more, the file is rewritten without them. */
const MAX_FINISHED = 10_000

/** Maximum entries of one write, which takes about a millisecond. */
const PART = 1_000

/** All unfinished entries. */
export interface OpenRemovals {
  readonly size: number
  values(): Iterator<Removal>
}

export class RemovalFile {
  readonly #path: string
  readonly #onError: (error: unknown) => void
  readonly #sync: BackgroundSync
  /** Lines in the file. */
  #length = 0
  /** Whether the last line may lack its end. Then the next entry would become a part of it. */
  #isTorn = false
  /** Entries that are not in the file yet. */
  #unwritten: Removal[] = []
  /** The last scheduled change of the file. Never rejects. */
  #changing: Promise<void> = Promise.resolve()
  /** Number of unfinished changes of the file. */
  #changes = 0

  /** `onError` gets the errors of the disk. A restart loses entries that the disk refused. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path
    this.#onError = onError
    this.#sync = new BackgroundSync(path, onError)
  }

  /** The entries of an earlier run. Ignores a torn last line, and other lines that are not entries. */
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

  /** Runs as a microtask, after the code of the caller and before its answer leaves. */
  #takeUnwritten(): void {
    if (this.#unwritten.length === 0) return // another change has written the entries
    if (this.#changes > 0 || this.#unwritten.length > PART) {
      void this.#change(() => this.#appendUnwritten())
      return
    }
    const text = `${this.#isTorn ? '\n' : ''}${this.#unwritten.map(lineOf).join('')}`
    this.#length += this.#unwritten.length
    this.#unwritten = []
    this.#isTorn = true // until the write is complete
    try {
      appendFileSync(this.#path, text, { mode: 0o600 })
      this.#isTorn = false
      void this.#sync.request()
    } catch (error) {
      this.#onError(error)
    }
  }

  /**
   * Rewrites the file if it has many finished entries. `open` are the unfinished entries, including those added
   * meanwhile.
   */
  compact(open: OpenRemovals): Promise<void> {
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

  /** Runs changes one after the other. */
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
    await nextTurn() // thousands of entries may arrive in one turn
    const removals = this.#unwritten
    this.#unwritten = []
    await using file = await open(this.#path, 'a', 0o600)
    if (this.#isTorn) await file.appendFile('\n')
    this.#isTorn = true // until the write is complete
    this.#length += await writeLines(file, removals.values())
    this.#isTorn = false
    await file.datasync()
  }
}

/** Appends lines to `file`. Returns their number. */
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

const lineOf = ({ id, owner, since, runtime }: Removal): string =>
  `${JSON.stringify([id, owner ?? null, since, ...(runtime === undefined ? [] : [runtime])])}\n`

function removalOf(line: string): Removal | undefined {
  try {
    const [id, owner, since, runtime] = JSON.parse(line) as unknown[]
    if (typeof id !== 'string' || typeof since !== 'number') return undefined
    const named = typeof runtime === 'string' ? { runtime } : {}
    return { id, owner: typeof owner === 'string' ? owner : undefined, since, ...named }
  } catch {
    return undefined
  }
}
