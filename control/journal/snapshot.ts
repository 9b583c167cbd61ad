/**
 * `<data-dir>/state.json`: one JSON object, task id to task record.
 *
 * Written aside, synced and renamed, in slices, so that nobody waits for it; read at start, in slices of its own text,
 * so that the order of the file is the order of the tasks. Besides the record of the wire an entry holds what only a
 * restart needs (`stored-task.ts`). A file of the older form, which has none of these, loads too. A file that cannot be
 * read stops the start and stays as it is.
 */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../shared/atomic-file.ts'
import { TASK_STATUSES } from '../../shared/contract/task-status.ts'
import { refuseSystemDirectory } from '../../shared/data-directory.ts'
import { LOCK_FILES, lockDirectory } from '../../shared/directory-lock.ts'
import { messageOf, UsageError } from '../../shared/errors.ts'
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
