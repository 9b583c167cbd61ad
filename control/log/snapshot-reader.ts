/**
 * Reads the state file at a start.
 *
 * The order of the file is the order of the tasks. An entry holds the record of a task, and fields that only a restart
 * needs (`stored-task.ts`). Files of earlier versions lack those fields and can still be read. `readSnapshotLines`
 * reads the files of `writeSnapshot`. `readSnapshot` reads any JSON, such as an edited file.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { runSync } from '../../shared/process/steps.ts'
import { JsonSyntaxError } from '../../shared/text/json-bytes.ts'
import { parseMembers } from '../json/large-json.ts'
import { checkedEntry } from './checked-entry.ts'
import { hasSnapshot, statePath } from './snapshot-writer.ts'
import type { StoredTask } from './stored-task.ts'
import { refuseAccess, refuseFile } from './unreadable-file.ts'

/**
 * Calls `visit` with each entry of the state file in `dataDir`, in the order of the file. Does nothing if there is no
 * file. Visits a repeated name each time; the last one counts, as in every reader of JSON. Throws `UsageError`.
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

/** Thrown if the state file does not have one entry per line. `readSnapshot` can read such a file. */
export class NotLineByLine extends Error {}

/**
 * As `readSnapshot`, for the files of `writeSnapshot`, with one entry per line. Needs a few megabytes of memory instead
 * of the size of the file. Throws `NotLineByLine` for any other file, maybe after it has visited some entries.
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
      const [id, entry] = memberIn(line)
      visit(id, checkedEntry(id, entry, refuse))
      expected = line.endsWith(',') ? 'entry' : 'end'
    } else {
      throw new NotLineByLine()
    }
  }
  if (expected !== 'nothing') throw new NotLineByLine()
}

/** The name of a member whose value is an object. */
const NAME = /^("(?:[^"\\]+|\\.)*"):(?={)/

/** Parses a line, which holds one member, with or without a comma. */
export function memberIn(line: string): [id: string, entry: unknown] {
  const [beginning, name] = NAME.exec(line) ?? []
  if (name === undefined) throw new NotLineByLine()
  try {
    return [JSON.parse(name), JSON.parse(line.slice(beginning!.length, line.endsWith(',') ? -1 : undefined))]
  } catch {
    throw new NotLineByLine()
  }
}

/** Bytes of one read. */
export const READ_BYTES = 1024 * 1024

/**
 * Yields the lines of a part of a file. Throws `NotLineByLine` if it is not UTF-8, or does not end with a line end.
 */
export function* linesOf(path: string, { from = 0, to = Number.POSITIVE_INFINITY } = {}): Generator<string> {
  const fd = openOrRefuse(path)
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const block = new Uint8Array(READ_BYTES)
    let rest = ''
    let at = from
    for (;;) {
      const size = readSync(fd, block, 0, Math.min(block.length, to - at), at)
      if (size === 0) break
      at += size
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
