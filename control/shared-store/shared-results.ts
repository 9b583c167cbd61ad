/**
 * Large results in rows. A row is kept before the state that refers to it, and removed with its graph, or once no task
 * refers to it any more.
 */
import { messageOf } from '../../shared/errors.ts'
import { runCooperatively } from '../../shared/steps.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { isLargeJson, ResultFile, type StoredResult } from '../graph/result-file.ts'
import type { KeptResults } from '../journal/keeper.ts'
import { jsonText } from '../json/pieces.ts'
import type { SharedRows } from './shared-rows.ts'

/** Replaces the number of the attempt in the names of inputs: all attempts share the input. */
const NO_ATTEMPT = 0

export class SharedResults implements KeptResults {
  readonly #rows: SharedRows
  readonly #onUnused: (name: string) => void
  /** For each shared result, the number of tasks that refer to it beside the first one. */
  readonly #sharers = new Map<string, number>()

  /** Results that recovered tasks refer to. */
  readonly #known = new Set<string>()

  /** `onUnused` is called with the name of a result that no task refers to any more. */
  constructor(rows: SharedRows, onUnused: (name: string) => void) {
    this.#rows = rows
    this.#onUnused = onUnused
  }

  keep(task: Task, result: unknown): unknown | Promise<unknown> {
    return isLargeJson(result) ? this.#keep(task, task.attempt, JSON.stringify(result)) : result
  }

  async keepInput(task: Task, input: unknown): Promise<ResultFile> {
    return await this.#keep(task, NO_ATTEMPT, await runCooperatively(jsonText(input)))
  }

  async keepJson(task: Task, pieces: readonly string[]): Promise<ResultFile> {
    return await this.#keep(task, task.attempt, pieces.join(''))
  }

  /** The name ends with a checksum, and the same name has the same content. */
  async #keep({ graph, position }: Task, attempt: number, json: string): Promise<ResultFile> {
    const checksum = Bun.hash.crc32(json).toString(16).padStart(8, '0')
    const name = `${graph.ordinal}-${position}-${attempt}-${checksum}.json`
    await this.#rows.keepResult(name, graph.ordinal, json)
    return new ResultFile(name)
  }

  async read({ name }: ResultFile): Promise<StoredResult> {
    try {
      const json = await this.#rows.readResult(name)
      return json === undefined ? { lost: `the result is lost: the database has no ${name}` } : { json }
    } catch (error) {
      return { lost: `the result cannot be read now: ${messageOf(error)}` }
    }
  }

  /** Counts the tasks of a recovered graph that refer to each result. */
  recovered({ tasks }: Graph): void {
    for (const { result, inputFile } of tasks) {
      for (const file of [result, inputFile]) {
        if (!(file instanceof ResultFile)) continue
        if (this.#known.has(file.name)) this.share(file)
        this.#known.add(file.name)
      }
    }
  }

  share({ name }: ResultFile): void {
    this.#sharers.set(name, (this.#sharers.get(name) ?? 0) + 1)
  }

  drop({ name }: ResultFile): void {
    const sharers = this.#sharers.get(name) ?? 0
    if (sharers > 1) this.#sharers.set(name, sharers - 1)
    else if (sharers === 1) this.#sharers.delete(name)
    else this.#onUnused(name)
  }
}
