/**
 * Reads the state file at a start.
 *
 * The order of the file is the order of the tasks. An entry holds the record of a task and what only a restart needs
 * (`stored-task.ts`); files of earlier versions lack the latter and load, too. `readSnapshotLines` reads files as
 * `writeSnapshot` writes them, `readSnapshot` reads any JSON, such as a file that somebody has edited.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { systemCodeOf } from '../../shared/errors.ts'
import { JsonSyntaxError } from '../../shared/json-bytes.ts'
import { runSync } from '../../shared/steps.ts'
import { parseMembers } from '../json/large-json.ts'
import { checkedEntry } from './checked-entry.ts'
import { hasSnapshot, statePath } from './snapshot-writer.ts'
import type { StoredTask } from './stored-task.ts'
import { refuseAccess, refuseFile } from './unreadable-file.ts'

/**
 * Calls `visit` with each entry of the state file in `dataDir`, in the order of the file; with none if there is no
 * file. A repeated name is visited again: the last one counts, as in every reader of JSON. Throws `UsageError`.
 */
export async function readSnapshot(dataDir: string, visit: (id: string, entry: StoredTask) => void): Promise<void> {
  const path = statePath(dataDir)
  if (!hasSnapshot(dataDir)) return
  const refuse = refuseFile('state file', path)
  const bytes = await Bun.file(path)
    .arrayBuffer()
    .catch((error) => {
      throw refuseAccess('state file', path, error)
    })
  try {
    runSync(parseMembers(new Uint8Array(bytes), (id, entry) => visit(id, checkedEntry(id, entry, refuse))))
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw refuse(`it is not valid JSON: ${error.message}`)
    throw error
  }
}

/** The state file does not have an entry a line, so only `readSnapshot` can read it. */
export class NotLineByLine extends Error {}

/**
 * As `readSnapshot`, with a few megabytes of the file in memory at a time instead of all of it. Reads what
 * `writeSnapshot` writes: an entry a line. Throws `NotLineByLine` for any other file, after it has visited some entries
 * or none.
 */
export function readSnapshotLines(dataDir: string, visit: (id: string, entry: StoredTask) => void): void {
  const path = statePath(dataDir)
  if (!hasSnapshot(dataDir)) return
  const refuse = refuseFile('state file', path)
  let expected: 'start' | 'entry or end' | 'entry' | 'end' | 'nothing' = 'start'
  for (const line of linesOf(path)) {
    if (expected === 'start' && line === '{') {
      expected = 'entry or end'
    } else if (expected.endsWith('end') && line === '}') {
      expected = 'nothing'
    } else if (expected.startsWith('entry')) {
      const hasMore = line.endsWith(',')
      const [id, entry] = entryOf(hasMore ? line.slice(0, -1) : line)
      visit(id, checkedEntry(id, entry, refuse))
      expected = hasMore ? 'entry' : 'end'
    } else {
      throw new NotLineByLine()
    }
  }
  if (expected !== 'nothing') throw new NotLineByLine()
}

/** The one member in a line. */
function entryOf(line: string): [id: string, entry: unknown] {
  let members: [string, unknown][]
  try {
    members = Object.entries(JSON.parse(`{${line}}`))
  } catch {
    throw new NotLineByLine()
  }
  // A name that stands twice in a line would be one member as well; such a file was not written by us.
  if (members.length !== 1 || !line.startsWith(`${JSON.stringify(members[0]![0])}:{`)) throw new NotLineByLine()
  return members[0]!
}

/** Bytes of the state file that are read at a time. */
const READ_BYTES = 1024 * 1024

/**
 * The lines of a file in UTF-8, without their ends. Throws `NotLineByLine` where it is not UTF-8 or has no last end.
 */
function* linesOf(path: string): Generator<string> {
  const fd = openOrRefuse(path)
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const block = new Uint8Array(READ_BYTES)
    let rest = ''
    for (let size = readSync(fd, block); size > 0; size = readSync(fd, block)) {
      const lines = (rest + decoder.decode(block.subarray(0, size), { stream: true })).split('\n')
      rest = lines.pop()!
      yield* lines
    }
    if (rest !== '') throw new NotLineByLine()
  } catch (error) {
    if (error instanceof TypeError) throw new NotLineByLine()
    throw systemCodeOf(error) === undefined ? error : refuseAccess('state file', path, error)
  } finally {
    closeSync(fd)
  }
}

function openOrRefuse(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (error) {
    throw refuseAccess('state file', path, error)
  }
}
