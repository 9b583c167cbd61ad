/**
 * `<data-dir>/state.json`, the state file: one JSON object of task ids and task records, an entry a line. The key of a
 * task that only its graph knows is `<graph_id>/<id>`.
 *
 * It is written to a new file, synced and renamed, in steps that let requests run in between.
 */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../shared/atomic-file.ts'
import { nextTurn, SLICE_MS } from '../../shared/steps.ts'
import type { Graph, Task } from '../graph/graph.ts'
import type { TaskStore } from '../store/tasks.ts'
import { storedTask } from './stored-task.ts'

export const statePath = (dataDir: string): string => join(dataDir, 'state.json')

/** Whether there is a state file. A symbolic link to a missing file counts, so that reading it fails. */
export const hasSnapshot = (dataDir: string): boolean =>
  lstatSync(statePath(dataDir), { throwIfNoEntry: false }) !== undefined

/** Bytes of entries written with one call. */
const WRITE_BYTES = 256 * 1024

/**
 * Writes the records of `store` to the state file of `dataDir`; returns its size in characters. `beforeRename` is called
 * when all records are read: the new file does not count yet.
 */
export async function writeSnapshot(
  store: TaskStore,
  dataDir: string,
  beforeRename?: () => Promise<void>,
): Promise<number> {
  let characters = 0
  await replaceFile(statePath(dataDir), async (file) => {
    let text = '{'
    let separator = '\n'
    let last: Graph | undefined
    let sliceEnd = performance.now() + SLICE_MS
    for (const task of store.recordedTasks()) {
      text += `${separator}${JSON.stringify(keyOf(store, task))}:${JSON.stringify(storedTask(store, task, task.graph !== last))}`
      separator = ',\n'
      last = task.graph
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
    await beforeRename?.()
  })
  return characters
}

/**
 * The key of `task`. An id of the service may look like the key of another task; that one then gets a suffix. Its
 * position makes the suffix its own.
 */
function keyOf(store: TaskStore, task: Task): string {
  if (store.isVisible(task)) return task.id
  const { graph, id, position } = task
  const prefix = encodeURIComponent(graph.id.toWellFormed())
  let name = id
  while (store.get(`${prefix}/${name}`) !== undefined || (name !== id && store.taskIn(graph, name) !== undefined))
    name += `+${position}`
  return `${prefix}/${name}`
}
