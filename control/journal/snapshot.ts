/**
 * `<data-dir>/state.json`: one JSON object, task id to task record.
 *
 * Written aside, synced and renamed, in slices, so that nobody waits for it; read at start, in slices of its own text,
 * so that the order of the file is the order of the tasks. Besides the record of the wire an entry holds what only a
 * restart needs (`stored-task.ts`). A file of the older form, which has none of these, loads too. A file that cannot be
 * read stops the start and stays as it is.
 */
import { closeSync, lstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../shared/atomic-file.ts'
import { TASK_STATUSES } from '../../shared/contract/task-status.ts'
import { refuseSystemDirectory } from '../../shared/data-directory.ts'
import { LOCK_FILES, lockDirectory } from '../../shared/directory-lock.ts'
import { messageOf, systemCodeOf, UsageError } from '../../shared/errors.ts'
import { isObject } from '../../shared/json.ts'
import { JsonSyntaxError } from '../../shared/json-bytes.ts'
import { makeDirectory, removeUnlessStarted } from '../../shared/new-directory.ts'
import { nextTurn, runSync, SLICE_MS } from '../../shared/steps.ts'
import { isTaskShape } from '../graph/decode.ts'
import { RESULT_FILE_NAME } from '../graph/result-file.ts'
import { parseMembers } from '../json/large-json.ts'
import type { TaskStore } from '../store/tasks.ts'
import { type StoredTask, storedTask } from './stored-task.ts'

export const statePath = (dataDir: string): string => join(dataDir, 'state.json')

/**
 * Makes the data directory if it is missing, for its owner alone, and takes its lock. Returns the function to be called
 * once the service has started; without it the exit removes a directory that this start made. Throws `UsageError`.
 */
export function takeDataDir(dataDir: string): () => void {
  refuseSystemDirectory(dataDir)
  const made = makeDataDir(dataDir)
  lockDirectory(dataDir, LOCK_FILES.control)
  return removeUnlessStarted(made, LOCK_FILES.control)
}

/** The directories that it made (`makeDirectory`). Throws `UsageError`. */
export function makeDataDir(dataDir: string): readonly string[] {
  try {
    return makeDirectory(dataDir)
  } catch (error) {
    throw new UsageError(
      `cannot make the data directory ${dataDir}: ${messageOf(error)} (choose another with --data-dir)`,
    )
  }
}

/** Bytes of entries written with one call. */
const WRITE_BYTES = 256 * 1024

/** Writes the visible tasks of `store` to the state file of `dataDir`; gives its size in characters. */
export async function writeSnapshot(store: TaskStore, dataDir: string): Promise<number> {
  let characters = 0
  await replaceFile(statePath(dataDir), async (file) => {
    let text = '{'
    let separator = '\n'
    let sliceEnd = performance.now() + SLICE_MS
    for (const task of store.visibleTasks()) {
      text += `${separator}${JSON.stringify(task.id)}:${JSON.stringify(storedTask(store, task))}`
      separator = ',\n'
      if (text.length >= WRITE_BYTES) {
        characters += text.length
        await file.writeFile(text)
        text = ''
      }
      if (performance.now() >= sliceEnd) {
        await nextTurn()
        sliceEnd = performance.now() + SLICE_MS
      }
    }
    characters += text.length
    await file.writeFile(`${text}\n}\n`)
  })
  return characters
}

/** Whether there is a state file; a link to a place that is gone is one that cannot be read. */
export const hasSnapshot = (dataDir: string): boolean =>
  lstatSync(statePath(dataDir), { throwIfNoEntry: false }) !== undefined

/**
 * Gives `visit` the entries of the state file in `dataDir`, in the order of the file; none when there is no file. A name that
 * stands twice is given twice: the last one counts, as in every reader of JSON. Throws `UsageError`.
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
 * As `readSnapshot`, with a few megabytes of the file in memory at a time instead of all of it. Reads what `writeSnapshot`
 * writes: an entry a line. Throws `NotLineByLine` for any other file, after it has visited some entries or none.
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

/** The lines of a file in UTF-8, without their ends. Throws `NotLineByLine` where it is not UTF-8 or has no last end. */
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

/** Makes the error for a file that cannot be read. */
export const refuseFile = (what: string, path: string) => (detail: string) =>
  new UsageError(`cannot read the ${what} ${path}: ${detail}; it is left as it is: repair it or move it away`)

/** Makes the error for a file that the system does not let us read; moving it away would lose what is in it. */
export const refuseAccess = (what: string, path: string, error: unknown) =>
  new UsageError(`cannot read the ${what} ${path}: ${messageOf(error)} (let the user of the service read it)`)

function checkedEntry(id: string, entry: unknown, refuse: (detail: string) => Error): StoredTask {
  if (!isTaskShape(entry)) throw refuse(`the entry of task ${id} is not a task`)
  const task = entry as Partial<StoredTask>
  if (!task.type) throw refuse(`task ${id} has no type`)
  if (!(TASK_STATUSES as readonly string[]).includes(task.status ?? '')) {
    throw refuse(`task ${id} has the unknown status ${JSON.stringify(task.status ?? null)}`)
  }
  if (task.result_file !== undefined && !RESULT_FILE_NAME.test(String(task.result_file))) {
    throw refuse(`task ${id} names the result file ${JSON.stringify(task.result_file)}`)
  }
  if (!isListOrAbsent(task.progress, isObject)) throw refuse(`task ${id} has progress that is no list of entries`)
  if (!isListOrAbsent(task.attempts, isAttempt)) throw refuse(`task ${id} has attempts that are no list of attempts`)
  if (!isListOrAbsent(task.settled_dependencies, isSettled)) {
    throw refuse(`task ${id} has settled_dependencies that are no list of dependencies and outcomes`)
  }
  return { ...(task as StoredTask), id }
}

const isListOrAbsent = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  value == null || (Array.isArray(value) && value.every(isItem))

const isAttempt = (item: unknown): boolean => isObject(item) && Number.isSafeInteger(item.attempt)

const isSettled = (item: unknown): boolean =>
  isObject(item) && typeof item.id === 'string' && [...TASK_STATUSES, 'deleted'].includes(String(item.outcome))
