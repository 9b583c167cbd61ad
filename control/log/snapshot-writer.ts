/**
 * Writes the state file, `<data-dir>/state.json`: a JSON object of task ids and task records, with one entry per line.
 * The key of a task that only its graph knows is `<graph_id>/<id>`.
 *
 * The content goes to a new file, which is synced and renamed. Writing works in steps, so requests run in between.
 */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../shared/files/atomic-file.ts'
import { nextTurn, SLICE_MS } from '../../shared/process/steps.ts'
import type { Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import { taskEntry } from './stored-task.ts'

export const statePath = (dataDir: string): string => join(dataDir, 'state.json')

/** Whether the state file exists. A symbolic link to a missing file counts, so that the start fails. */
export const hasSnapshot = (dataDir: string): boolean =>
  lstatSync(statePath(dataDir), { throwIfNoEntry: false }) !== undefined

/** Characters of entries written with one call. */
const WRITE_CHARACTERS = 256 * 1024

/** Writes the records of `store` to the state file of `dataDir`. */
export async function writeSnapshot(store: TaskStore, dataDir: string): Promise<void> {
  await replaceFile(statePath(dataDir), async (file) => {
    let text = '{'
    const write = async () => {
      await file.writeFile(text)
      text = ''
    }
    let separator = '\n'
    let last: Task | undefined
    let sliceEnd = performance.now() + SLICE_MS
    for (const task of store.recordedTasks()) {
      const entry = taskEntry(store, task, task.graph !== last?.graph)
      text += `${separator}${JSON.stringify(keyOf(store, task))}:${JSON.stringify(entry)}`
      separator = ',\n'
      last = task
      if (text.length >= WRITE_CHARACTERS) await write()
      if (performance.now() >= sliceEnd) {
        await nextTurn()
        sliceEnd = performance.now() + SLICE_MS
      }
    }
    text += '\n}\n'
    await write()
  })
}

/**
 * The key of `task`. If `<graph_id>/<id>` is also the id of a task of the service, the key gets a suffix, made of the
 * position of the task in its graph.
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
