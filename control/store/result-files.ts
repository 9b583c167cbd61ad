/**
 * `<data-dir>/results/`: large results, a file each.
 *
 * A file is on disk before the state that names it is written. One that is not needed any more goes after the next
 * snapshot, when nothing on disk names it; what a crash leaves in between is found at the next start.
 */
import { mkdirSync, readdirSync, unlinkSync } from 'node:fs'
import { open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../../shared/atomic-file.ts'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { Graph } from '../graph/graph.ts'
import { isLargeJson, RESULT_FILE_NAME, ResultFile } from '../graph/result-file.ts'
import type { Task } from '../graph/task.ts'

export class ResultFiles {
  readonly #directory: string
  readonly #log: Log
  #dropped: ResultFile[] = []

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
    const name = `${task.graph.ordinal}-${task.position}-${task.attempt}.json`
    const path = join(this.#directory, name)
    try {
      const file = await open(path, 'w', 0o600)
      try {
        await file.writeFile(JSON.stringify(result))
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

  /** The result as JSON text, or undefined when its file is gone. */
  async read({ name }: ResultFile): Promise<string | undefined> {
    try {
      return await readFile(join(this.#directory, name), 'utf8')
    } catch (error) {
      this.#log.error('cannot read a large result', { file: name, cause: messageOf(error) })
      return undefined
    }
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
