/**
 * Writes the state file, `<data-dir>/state.json`: a JSON object of task ids and task records, with one entry per line.
 * The key of a task that only its graph knows is `<graph_id>/<id>`.
 *
 * The content goes to a new file, which is synced and renamed. Writing works in steps, so requests run in between.
 */
import { existsSync, lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../shared/files/atomic-file.ts'
import { nextTurn, SLICE_MS } from '../../shared/process/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { TaskStore } from '../store/tasks.ts'
import { ShortFormWriter, shortFormPath } from './short-form-writer.ts'
import { storedTask } from './stored-task.ts'
import { TextBuffer } from './text-buffer.ts'

export const statePath = (dataDir: string): string => join(dataDir, 'state.json')

/** Whether the state file exists. A symbolic link to a missing file counts, so that the start fails. */
export const hasSnapshot = (dataDir: string): boolean =>
  lstatSync(statePath(dataDir), { throwIfNoEntry: false }) !== undefined

/** Whether the state file has at least `minBytes`, and no short form. */
export const lacksShortForm = (dataDir: string, minBytes: number): boolean =>
  hasSnapshot(dataDir) && lstatSync(statePath(dataDir)).size >= minBytes && !existsSync(shortFormPath(dataDir))

/** Bytes of entries written with one call. */
const WRITE_BYTES = 256 * 1024

export interface SnapshotExtras {
  /** Called after all records were written, and before the new file replaces the old one. */
  readonly beforeRename?: () => Promise<void>
  /** Bytes of a state file that gets a short form of the graphs that have ended. Undefined: none does. */
  readonly shortFormFrom?: number | undefined
}

/** Writes the records of `store` to the state file of `dataDir`. Returns its size in bytes. */
export async function writeSnapshot(
  store: TaskStore,
  dataDir: string,
  { beforeRename, shortFormFrom }: SnapshotExtras = {},
): Promise<number> {
  const short = shortFormFrom === undefined ? undefined : new ShortFormWriter(dataDir, shortFormFrom)
  let bytes = 0
  let checksum = 0
  let entriesEnd = 0
  try {
    await replaceFile(statePath(dataDir), async (file) => {
      const buffer = new TextBuffer(2 * WRITE_BYTES)
      let at = buffer.add('{')
      const write = async () => {
        bytes += buffer.length
        checksum = Bun.hash.crc32(buffer.bytes, checksum)
        await file.writeFile(buffer.bytes)
        buffer.clear()
        await short?.writeSome(bytes)
      }
      let separator = '\n'
      let last: Task | undefined
      let sliceEnd = performance.now() + SLICE_MS
      for (const task of store.recordedTasks()) {
        const entry = storedTask(store, task, task.graph !== last?.graph)
        at += buffer.add(separator)
        const start = at
        at += buffer.add(`${JSON.stringify(keyOf(store, task))}:${JSON.stringify(entry)}`)
        short?.add(task, entry, start)
        separator = ',\n'
        last = task
        if (buffer.length >= WRITE_BYTES) await write()
        if (performance.now() >= sliceEnd) {
          await nextTurn()
          sliceEnd = performance.now() + SLICE_MS
        }
      }
      entriesEnd = at + 1
      buffer.add('\n}\n')
      await write()
      await beforeRename?.()
    })
    rmSync(shortFormPath(dataDir), { force: true }) // it belongs to the file that was replaced
    await short?.end({ state_bytes: bytes, state_checksum: checksum, entries_end: entriesEnd })
  } catch (error) {
    await short?.giveUp()
    throw error
  }
  return bytes
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
