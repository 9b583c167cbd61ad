/** Files of earlier formats whose content is in the notes (`notes.ts`) of later ones. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { type KeptKey, nameOf } from './idempotency.ts'
import { isDelivery } from './kept-callbacks.ts'
import { isOrphan, type Orphan } from './kept-orphans.ts'
import { type Notes, NUMBERS_NOTE } from './notes.ts'
import { refuseFile } from './unreadable-file.ts'

/** Callbacks that wait for delivery, and ids of callbacks that are over, as JSON lines. A kill may have torn a line. */
const CALLBACKS_FILE = 'callbacks.jsonl'

/** JSON lines: the keys as of the last snapshot, oldest first. */
const KEYS_FILE = 'idempotency.ndjson'

export const ORPHANS_FILE = 'orphans.json'

/** An upper bound of the numbers of changes. */
const NUMBERS_FILE = 'event-numbers'

export const sideFiles = (dataDir: string): string[] =>
  [CALLBACKS_FILE, KEYS_FILE, ORPHANS_FILE, NUMBERS_FILE].map((name) => join(dataDir, name))

/** Adds what the files hold to the notes. Throws `UsageError` if one is unreadable. */
export function readSideFiles(dataDir: string, notes: Notes): void {
  const path = join(dataDir, CALLBACKS_FILE)
  for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) {
    const entry = jsonOrUndefined(line)
    if (isDelivery(entry)) notes.apply([null, 'callback', entry.id, entry])
    else if (isObject(entry) && typeof entry.over === 'string' && typeof entry.graphId === 'string')
      notes.apply([null, 'callback', entry.over, entry.graphId])
  }
  for (const key of readKeys(join(dataDir, KEYS_FILE))) notes.apply([null, 'key', nameOf(key), key])
  for (const orphan of readOrphans(join(dataDir, ORPHANS_FILE))) notes.apply([null, 'orphan', orphan.handle_id, orphan])
}

/** As `readSideFiles`, for the file with the upper bound of numbers, which counts for one format longer. */
export function readNumbers(dataDir: string, notes: Notes): void {
  const path = join(dataDir, NUMBERS_FILE)
  if (!existsSync(path)) return
  const text = readFileSync(path, 'utf8')
  if (!/^\d{1,15}\n$/.test(text)) throw refuseFile('file of event numbers', path)('it holds no number')
  notes.apply([null, 'numbers', NUMBERS_NOTE, Number(text)])
}

function readKeys(path: string): KeptKey[] {
  if (!existsSync(path)) return []
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => keyIn(JSON.parse(line)))
  } catch (error) {
    throw refuseFile('file of idempotency keys', path)(messageOf(error))
  }
}

function keyIn(line: unknown): KeptKey {
  const { scope, key, hash, answer, at } = (line ?? {}) as Partial<KeptKey>
  const isWhole = [scope, key, hash, answer].every((part) => typeof part === 'string') && typeof at === 'number'
  if (!isWhole) throw new Error('a line is not a key with its answer')
  return line as KeptKey
}

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

/** Called when a pack holds their content for sure. */
export function removeSideFiles(dataDir: string): void {
  for (const path of sideFiles(dataDir)) rmSync(path, { force: true })
}
