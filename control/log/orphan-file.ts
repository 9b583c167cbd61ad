/** `orphans.json`: attempts that control still has to end in runtime services. Used without a database. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { replaceFileNow } from '../../shared/files/atomic-file.ts'
import type { Log } from '../../shared/logs/log.ts'
import { isObject, type JsonObject } from '../../shared/text/json.ts'

export interface Orphan {
  readonly handle_id: string
  readonly owner?: string
  /**
   * Whether the runtime service has confirmed the attempt. If not, its request may still arrive, so it is looked for
   * twice.
   */
  readonly is_taken: boolean
  /** Milliseconds since 1970. */
  readonly since: number
  /** The name of its runtime service. Absent: `default`. */
  readonly runtime?: string
}

/** Keeps orphans. No method throws. */
export interface OrphanKeeper {
  /** The orphans of an earlier run. */
  readonly found: readonly Orphan[]
  /** Called with the orphans of another replica that this one takes over. */
  onFound: (orphans: readonly Orphan[]) => void
  /** Keeps an orphan, at the latest with the end of its task. */
  add(orphan: Orphan): void
  /** These were killed or given up. Called after each round, perhaps with none. */
  remove(orphans: readonly Orphan[]): void
}

export const ORPHANS_FILE = 'orphans.json'

export class OrphanFile implements OrphanKeeper {
  readonly #path: string
  readonly #log: Log
  readonly #orphans: Map<string, Orphan>
  /** Whether the file lacks the last change. */
  #isUnwritten = false
  onFound: (orphans: readonly Orphan[]) => void = () => {}

  /** Reads the orphans of an earlier run. Throws `UsageError` if the file is unreadable. */
  constructor({ dataDir, log }: { readonly dataDir: string; readonly log: Log }) {
    this.#path = join(dataDir, ORPHANS_FILE)
    this.#log = log
    this.#orphans = new Map(readOrphans(this.#path).map((orphan) => [orphan.handle_id, orphan]))
  }

  get found(): readonly Orphan[] {
    return [...this.#orphans.values()]
  }

  /** The file is synced when this returns, because callers promise the end of an attempt. */
  add(orphan: Orphan): void {
    this.#orphans.delete(orphan.handle_id)
    this.#orphans.set(orphan.handle_id, orphan)
    this.#write(true)
  }

  /** Also makes up for a write that the disk refused. */
  remove(orphans: readonly Orphan[]): void {
    let hasChanged = false
    for (const orphan of orphans) {
      if (this.#orphans.get(orphan.handle_id) === orphan) hasChanged = this.#orphans.delete(orphan.handle_id)
    }
    this.#write(hasChanged)
  }

  #write(hasChanged: boolean): void {
    this.#isUnwritten ||= hasChanged
    if (!this.#isUnwritten) return
    try {
      replaceFileNow(this.#path, JSON.stringify({ orphans: this.found }))
      this.#isUnwritten = false
    } catch (error) {
      this.#log.error('cannot note which tasks are to be ended in the runtime service', { cause: messageOf(error) })
    }
  }
}

/** Whether `value`, read from JSON, is an orphan. */
export const isOrphan = (value: unknown): value is Orphan => isObject(value) && hasFields(value)

const hasFields = ({ handle_id, since, runtime }: JsonObject): boolean =>
  typeof handle_id === 'string' && Number.isFinite(since) && (runtime === undefined || typeof runtime === 'string')

/** None if there is no file. Throws `UsageError` if it is unreadable. */
export function readOrphans(path: string): Orphan[] {
  if (!existsSync(path)) return []
  try {
    const { orphans } = JSON.parse(readFileSync(path, 'utf8')) as { orphans: Orphan[] }
    if (!orphans.every(isOrphan)) {
      throw new Error('it does not hold what it should')
    }
    return orphans
  } catch (error) {
    throw new UsageError(
      `cannot read ${path}: ${messageOf(error)}; it names tasks that are to be ended in the runtime service (repair it, or remove it if none of them runs any more)`,
    )
  }
}
