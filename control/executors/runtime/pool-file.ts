/** `runtimes.json`: what callers changed in the pool of runtime services. Written and synced before they are answered. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFileNow } from '../../../shared/atomic-file.ts'
import { MAX_RUNTIMES } from '../../../shared/contract/placement.ts'
import { messageOf, UsageError } from '../../../shared/errors.ts'
import { isObject } from '../../../shared/json.ts'
import { baseUrlOf, isRuntimeName, type RuntimeEntry, runtimeLabelsFault } from '../../../shared/runtime-entry.ts'

/** Names that were removed for good and are remembered. The oldest are forgotten first. */
const MAX_LOST = 4 * MAX_RUNTIMES

export interface PoolChanges {
  /** Runtime services that no `--runtime-url` names. */
  readonly added: readonly RuntimeEntry[]
  /** Names of those that get no new tasks. */
  readonly draining: readonly string[]
  /** Those of `--runtime-url` that were removed, as they were then. */
  readonly removed: readonly RuntimeEntry[]
  /** Names of those that were lost with their attempts. */
  readonly lost: readonly string[]
}

const NO_CHANGES: PoolChanges = { added: [], draining: [], removed: [], lost: [] }

const FILE = 'runtimes.json'

export class PoolFile {
  readonly #path: string

  constructor(dataDir: string) {
    this.#path = join(dataDir, FILE)
  }

  /** Throws `UsageError` if the file is unreadable. */
  read(): PoolChanges {
    if (!existsSync(this.#path)) return NO_CHANGES
    try {
      return changesIn(JSON.parse(readFileSync(this.#path, 'utf8')))
    } catch (error) {
      throw new UsageError(
        `cannot read ${this.#path}: ${messageOf(error)}; it names runtime services that were added or drained (repair it, or remove it and add them again)`,
      )
    }
  }

  /** Throws the error of the disk. */
  write({ added, draining, removed, lost }: PoolChanges): void {
    replaceFileNow(this.#path, JSON.stringify({ added, draining, removed, lost: lost.slice(-MAX_LOST) }))
  }
}

function changesIn(value: unknown): PoolChanges {
  const { added, draining, removed, lost } = isObject(value) ? value : {}
  return { added: entriesIn(added), draining: namesIn(draining), removed: entriesIn(removed), lost: namesIn(lost) }
}

function entriesIn(value: unknown): RuntimeEntry[] {
  if (!Array.isArray(value)) throw new Error('it does not hold what it should')
  return value.map((entry) => {
    const { name, url, labels } = isObject(entry) ? entry : {}
    const isName = typeof name === 'string' && isRuntimeName(name)
    if (!isName || typeof url !== 'string' || baseUrlOf(url) === undefined) throw new Error('an entry is no runtime')
    const fault = runtimeLabelsFault(`labels of ${name}`, labels)
    if (fault !== undefined) throw new Error(fault)
    return { name, url, labels: labels as RuntimeEntry['labels'] }
  })
}

function namesIn(value: unknown): string[] {
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value
  throw new Error('it does not hold what it should')
}
