/**
 * `<data-dir>/results/`: large results, a file each.
 *
 * A file is on disk before the state that names it is written. Its name ends in the checksum of what is in it, so that
 * whoever reads it knows whether that is what was written; files of earlier versions have none and must be JSON. One that is not needed any more goes after the next
 * snapshot, when nothing on disk names it; what a crash leaves in between is found at the next start.
 */
import { mkdirSync, readdirSync, unlinkSync } from 'node:fs'
import { open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../../shared/atomic-file.ts'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { isLargeJson, RESULT_FILE_NAME, ResultFile, type StoredResult } from '../graph/result-file.ts'

export class ResultFiles {
  readonly #directory: string
  readonly #log: Log
  #dropped: ResultFile[] = []
  /** Those that cannot be read and that the log has a line of. */
  readonly #toldOf = new WeakSet<ResultFile>()

  /** Makes the directory, and removes what none of `graphs` names. */
  constructor(dataDir: string, graphs: readonly Graph[], log: Log) {
    this.#directory = join(dataDir, 'results')
    this.#log = log
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    const needed = new Set<string>()
    for (const graph of graphs) {
      for (const { result } of graph.tasks) if (result instanceof ResultFile) needed.add(result.name)
    }
    for (const name of readdirSync(this.#directory)) {
      if (RESULT_FILE_NAME.test(name) && !needed.has(name)) unlinkSync(join(this.#directory, name))
    }
  }

  /** What the task holds for `result`: itself when it is small, else a file. Falls back to itself when the disk refuses. */
  keep(task: Task, result: unknown): unknown | Promise<unknown> {
    return isLargeJson(result) ? this.#save(task, result) : result
  }

  async #save(task: Task, result: unknown): Promise<unknown> {
    const json = Buffer.from(JSON.stringify(result))
    const name = `${task.graph.ordinal}-${task.position}-${task.attempt}-${checksumOf(json)}.json`
    const path = join(this.#directory, name)
    try {
      const file = await open(path, 'w', 0o600)
      try {
        await file.writeFile(json)
        await file.datasync()
      } finally {
        await file.close()
      }
      await syncDirectory(this.#directory)
      return new ResultFile(name)
    } catch (error) {
      await unlink(path).catch(() => {})
      const fields = { trace_id: task.graph.traceId, task_id: task.id, cause: messageOf(error) }
      this.#log.error('cannot write a large result to its file; it stays in memory', fields)
      return result
    }
  }

  /** The result, if its file is there and holds what was written. */
  async read(file: ResultFile): Promise<StoredResult> {
    const { name } = file
    try {
      const bytes = await readFile(join(this.#directory, name))
      const checksum = RESULT_FILE_NAME.exec(name)?.[1]
      const json = bytes.toString('utf8')
      if (checksum === undefined ? isJson(json) : checksum === checksumOf(bytes)) return { json }
      return this.#lost(file, 'is not what was written')
    } catch (error) {
      return this.#lost(file, systemCodeOf(error) === 'ENOENT' ? 'is gone' : `cannot be read: ${messageOf(error)}`)
    }
  }

  #lost(file: ResultFile, how: string): StoredResult {
    const lost = `the result is lost: its file results/${file.name} in the data directory ${how}`
    if (!this.#toldOf.has(file)) this.#log.warn('a large result is lost', { file: file.name, cause: lost })
    this.#toldOf.add(file)
    return { lost }
  }

  /** The task that had it is gone. */
  drop(file: ResultFile): void {
    this.#dropped.push(file)
  }

  /** To be called with what `takeDropped` gave before a snapshot, once that is in place. */
  async remove(files: readonly ResultFile[]): Promise<void> {
    for (const { name } of files) {
      await unlink(join(this.#directory, name)).catch((error) => {
        if (systemCodeOf(error) !== 'ENOENT')
          this.#log.error('cannot remove a result', { file: name, cause: messageOf(error) })
      })
    }
  }

  /** The files that nobody needs any more as of now. */
  takeDropped(): ResultFile[] {
    const dropped = this.#dropped
    this.#dropped = []
    return dropped
  }

  /** Files whose snapshot failed: they are still named on disk. */
  giveBack(files: readonly ResultFile[]): void {
    this.#dropped.push(...files)
  }
}

const checksumOf = (bytes: Uint8Array): string => Bun.hash.crc32(bytes).toString(16).padStart(8, '0')

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
