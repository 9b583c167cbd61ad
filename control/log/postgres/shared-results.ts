/**
 * Large results in rows. A row is kept before the state that refers to it, and removed once no task refers to it any more.
 *
 * Tasks of several graphs can share a result, after a rerun or because it was cached. How many do is in the row, changed in
 * the turn of their states: whatever becomes of one graph, on whichever replica, the others keep the result.
 */
import { messageOf } from '../../../shared/contract/errors.ts'
import { runCooperatively } from '../../../shared/process/steps.ts'
import { jsonText } from '../../json/pieces.ts'
import {
  isLargeJson,
  LARGE_RESULT_CHARACTERS,
  RESULT_FILE_NAME,
  ResultFile,
  SHARED_RESULT_CHARACTERS,
  type StoredResult,
} from '../../rules/result-file.ts'
import type { Task } from '../../task/graph.ts'
import type { KeptResults } from '../keeper.ts'
import type { SharedRows } from './shared-rows.ts'

/** Replaces the number of the attempt in the names of inputs: all attempts share the input. */
const NO_ATTEMPT = 0

export class SharedResults implements KeptResults {
  readonly #rows: Pick<SharedRows, 'keepResult' | 'readResult'>
  readonly #onUse: (name: string, change: 1 | -1) => void

  /** `onUse` is called when one more task refers to a result that others refer to, or when one does no more. */
  constructor(rows: Pick<SharedRows, 'keepResult' | 'readResult'>, onUse: (name: string, change: 1 | -1) => void) {
    this.#rows = rows
    this.#onUse = onUse
  }

  keep(task: Task, result: unknown): unknown | Promise<unknown> {
    const limit = task.options.cache === undefined ? LARGE_RESULT_CHARACTERS : SHARED_RESULT_CHARACTERS
    return isLargeJson(result, limit) ? this.#keep(task, task.attempt, JSON.stringify(result)) : result
  }

  async keepInput(task: Task, input: unknown): Promise<ResultFile> {
    return await this.#keep(task, NO_ATTEMPT, await runCooperatively(jsonText(input)))
  }

  async keepJson(task: Task, pieces: readonly string[]): Promise<ResultFile> {
    return await this.#keep(task, task.attempt, pieces.join(''))
  }

  /** The name ends with a checksum and the bytes, and the same name has the same content. */
  async #keep({ graph, position }: Task, attempt: number, json: string): Promise<ResultFile> {
    const name = `${graph.ordinal}-${position}-${attempt}-${checksumOf(json)}-${Buffer.byteLength(json)}.json`
    await this.#rows.keepResult(name, graph.ordinal, json)
    return new ResultFile(name)
  }

  async read({ name }: ResultFile): Promise<StoredResult> {
    try {
      const json = await this.#rows.readResult(name)
      if (json === undefined) return { lost: `the result is lost: the database has no ${name}` }
      const checksum = RESULT_FILE_NAME.exec(name)?.[1]
      return checksum === undefined || checksum === checksumOf(json)
        ? { json }
        : { lost: `the result is lost: ${name} in the database is not what was written` }
    } catch (error) {
      return { lost: `the result cannot be read now: ${messageOf(error)}` }
    }
  }

  share({ name }: ResultFile): void {
    this.#onUse(name, 1)
  }

  drop({ name }: ResultFile): void {
    this.#onUse(name, -1)
  }
}

const checksumOf = (json: string): string => Bun.hash.crc32(json).toString(16).padStart(8, '0')
