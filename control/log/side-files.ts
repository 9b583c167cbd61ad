/** Files of earlier formats whose content is in the notes (`notes.ts`) of later ones. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { isDelivery } from './kept-callbacks.ts'
import type { Notes } from './notes.ts'

/** JSON lines, of which a kill may have torn one: callbacks that wait for delivery, and ids of those that are over. */
const CALLBACKS_FILE = 'callbacks.jsonl'

export const sideFiles = (dataDir: string): string[] => [CALLBACKS_FILE].map((name) => join(dataDir, name))

/** Adds what the files hold to the notes. */
export function readSideFiles(dataDir: string, notes: Notes): void {
  const path = join(dataDir, CALLBACKS_FILE)
  for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) {
    const entry = jsonOrUndefined(line)
    if (isDelivery(entry)) notes.apply([null, 'callback', entry.id, entry])
    else if (isObject(entry) && typeof entry.over === 'string' && typeof entry.graphId === 'string')
      notes.apply([null, 'callback', entry.over, entry.graphId])
  }
}

/** Called when a pack holds their content for sure. */
export function removeSideFiles(dataDir: string): void {
  for (const path of sideFiles(dataDir)) rmSync(path, { force: true })
}
