/**
 * `<data-dir>/results/`: large results, and large inputs with values of other tasks, one file each.
 *
 * A file is synced before the state that names it is written. Its name ends with the checksum of its content, which every
 * read verifies, and the bytes. Names of earlier versions lack the bytes, or both; then the content must be JSON. A name
 * begins with the graph, the position of the task and the attempt. A restart may change positions, so another task may have
 * that name with the same content: then the number of the attempt is raised until no file has the name. A task and its reused
 * outcome in a rerun share a file. A result in pieces is written under another name first, as its checksum is known only
 * then. After the last task has dropped a file, the next snapshot removes it, because the state file and the journal no
 * longer name it. A start removes unused files that a crash left.
 */
import { mkdirSync, readdirSync, unlinkSync } from 'node:fs'
import { open, readFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import { syncDirectory } from '../../shared/files/atomic-file.ts'
import type { Log } from '../../shared/logs/log.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { jsonText } from '../json/pieces.ts'
import {
  isLargeJson,
  LARGE_RESULT_CHARACTERS,
  RESULT_FILE_NAME,
  ResultFile,
  SHARED_RESULT_CHARACTERS,
  type StoredResult,
} from '../rules/result-file.ts'
import type { Graph, Task } from '../task/graph.ts'
import { writeText } from './text-writer.ts'

/** Names of files that are being written and are not results yet. A start removes those that a crash left. */
const UNFINISHED_FILE = /^large-\d+\.new$/

type Place = Pick<Task, 'graph' | 'position'>

export class ResultFiles {
  readonly #directory: string
  readonly #log: Log
  #dropped: ResultFile[] = []
  /** Number of results in pieces so far. */
  #inPieces = 0
  /** For each shared file, the number of tasks that refer to it beside the first one. */
  readonly #sharers = new Map<string, number>()
  /** Lost files that were logged. */
  readonly #logged = new WeakSet<ResultFile>()

  /** Creates the directory, and removes files that no task of `graphs` refers to. */
  constructor(dataDir: string, graphs: readonly Graph[], log: Log) {
    this.#directory = join(dataDir, 'results')
    this.#log = log
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    const needed = new Set<string>()
    for (const graph of graphs) {
      for (const { result, rare } of graph.tasks) {
        if (rare.input_file !== undefined) needed.add(rare.input_file.name)
        if (!(result instanceof ResultFile)) continue
        if (needed.has(result.name)) this.share(result)
        needed.add(result.name)
      }
    }
    for (const name of readdirSync(this.#directory)) {
      const isUnused = UNFINISHED_FILE.test(name) || (RESULT_FILE_NAME.test(name) && !needed.has(name))
      if (isUnused) unlinkSync(join(this.#directory, name))
    }
  }

  /**
   * Writes a large result to a file and returns the file. Returns a small result, or one that the disk refuses, itself.
   */
  keep(task: Task, result: unknown): unknown | Promise<unknown> {
    const limit = task.options.cache === undefined ? LARGE_RESULT_CHARACTERS : SHARED_RESULT_CHARACTERS
    return isLargeJson(result, limit) ? this.#save(task, result) : result
  }

  async #save(task: Task, result: unknown): Promise<unknown> {
    const json = Buffer.from(JSON.stringify(result))
    try {
      return await this.#write(task, task.attempt, json)
    } catch (error) {
      this.#logRefused(task, error)
      return result
    }
  }

  /** Writes a large input to a file, which is kept until the task has ended. Undefined if the disk refuses. */
  async keepInput(task: Task, input: unknown): Promise<ResultFile | undefined> {
    const json = Buffer.from(await runCooperatively(jsonText(input)))
    try {
      return await this.#write(task, NO_ATTEMPT, json)
    } catch (error) {
      const fields = { trace_id: task.graph.traceId, task_id: task.id, cause: messageOf(error) }
      this.#log.error('cannot write a large input to its file; later attempts resolve it again', fields)
      return undefined
    }
  }

  /**
   * Writes the pieces of a large result, as JSON, to a file, without blocking the event loop. Undefined if the disk refuses.
   */
  async keepJson(task: Task, pieces: readonly string[]): Promise<ResultFile | undefined> {
    try {
      return await this.#writePieces(task, pieces)
    } catch (error) {
      this.#logRefused(task, error)
      return undefined
    }
  }

  #logRefused({ id, graph }: Task, error: unknown): void {
    const fields = { trace_id: graph.traceId, task_id: id, cause: messageOf(error) }
    this.#log.error('cannot write a large result to its file; it stays in memory', fields)
  }

  async #write(task: Place, attempt: number, json: Uint8Array): Promise<ResultFile> {
    const { file, name } = await this.#newFile(task, attempt, `${checksumOf(json)}-${json.length}`)
    try {
      try {
        await file.writeFile(json)
        await file.datasync()
      } finally {
        await file.close()
      }
      await syncDirectory(this.#directory)
      return new ResultFile(name)
    } catch (error) {
      await unlink(join(this.#directory, name)).catch(() => {})
      throw error
    }
  }

  async #writePieces(task: Task, pieces: readonly string[]): Promise<ResultFile> {
    const unfinished = join(this.#directory, `large-${++this.#inPieces}.new`)
    const { checksum, bytes } = await writeText(unfinished, pieces)
    let path = unfinished
    try {
      const { file, name } = await this.#newFile(task, task.attempt, `${hexOf(checksum)}-${bytes}`)
      await file.close() // it stays empty: it keeps others from taking the name
      path = join(this.#directory, name)
      await rename(unfinished, path)
      await syncDirectory(this.#directory)
      return new ResultFile(name)
    } catch (error) {
      for (const left of new Set([unfinished, path])) await unlink(left).catch(() => {})
      throw error
    }
  }

  /** Opens a new file for the attempt of a task, or for the next one without a file of that name. */
  async #newFile({ graph, position }: Place, attempt: number, content: string) {
    for (let number = attempt; ; number++) {
      const name = `${graph.ordinal}-${position}-${number}-${content}.json`
      const file = await openNew(join(this.#directory, name))
      if (file !== undefined) return { file, name }
    }
  }

  /** The result as JSON text, or the reason why it is lost. Logs the first failed read of each file. */
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
    if (!this.#logged.has(file)) this.#log.warn('a large result is lost', { file: file.name, cause: lost })
    this.#logged.add(file)
    return { lost }
  }

  /** Adds a task that refers to `file`, to which another task already refers. */
  share({ name }: ResultFile): void {
    this.#sharers.set(name, (this.#sharers.get(name) ?? 0) + 1)
  }

  /** Removes a task that referred to `file`. */
  drop(file: ResultFile): void {
    const sharers = this.#sharers.get(file.name) ?? 0
    if (sharers === 0) this.#dropped.push(file)
    else if (sharers === 1) this.#sharers.delete(file.name)
    else this.#sharers.set(file.name, sharers - 1)
  }

  /** Removes files that `takeDropped` returned. Called once the snapshot after that is in place. */
  async remove(files: readonly ResultFile[]): Promise<void> {
    for (const { name } of files) {
      await unlink(join(this.#directory, name)).catch((error) => {
        if (systemCodeOf(error) !== 'ENOENT')
          this.#log.error('cannot remove a result', { file: name, cause: messageOf(error) })
      })
    }
  }

  /** Returns and forgets the files that no task refers to any more. */
  takeDropped(): ResultFile[] {
    const dropped = this.#dropped
    this.#dropped = []
    return dropped
  }

  /** Takes `files` back after a failed snapshot: the disk still names them. */
  giveBack(files: readonly ResultFile[]): void {
    this.#dropped.push(...files)
  }
}

/** Replaces the number of the attempt in the names of input files: all attempts share the input. */
const NO_ATTEMPT = 0

const checksumOf = (bytes: Uint8Array): string => hexOf(Bun.hash.crc32(bytes))

const hexOf = (checksum: number): string => checksum.toString(16).padStart(8, '0')

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Undefined if the file is there already. */
async function openNew(path: string) {
  try {
    return await open(path, 'wx', 0o600)
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return undefined
    throw error
  }
}
