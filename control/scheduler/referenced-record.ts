/** The record of an ended task, as references see it: it never changes, and a large result is read from its file. */
import { DEFAULT_RUNTIME } from '../../shared/contract/runtime-names.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { splitAtStar } from '../json/json-pointer.ts'
import { parseMembers, parseObjectWithArrays } from '../json/large-json.ts'
import type { KeptResults } from '../log/keeper.ts'
import type { Reference } from '../rules/references.ts'
import { LARGE_RESULT_CHARACTERS, ResultFile } from '../rules/result-file.ts'
import type { FanOut } from '../task/fan-out.ts'
import type { Task } from '../task/graph.ts'
import { hidesAt, taskRecord, wholeInputs } from '../task/record.ts'

export class ReferencedRecord {
  readonly #task: Task
  readonly #results: Pick<KeptResults, 'read'>
  readonly #record: Readonly<Record<string, unknown>>
  readonly #whole: Readonly<Record<string, unknown>>
  #reading: Promise<void> | undefined
  /** The result, from its file, or why it is lost. */
  #stored: { readonly value: unknown } | { readonly lost: string } | undefined

  constructor(task: Task, results: Pick<KeptResults, 'read'>) {
    this.#task = task
    this.#results = results
    // Both may change after the end of the task. The value of a reference must not.
    const { replaced: _, result_file: __, ...record } = taskRecord(task)
    this.#record = record
    this.#whole = wholeInputs(task)
  }

  /** Reads the result from its file, if the reference needs it. Undefined if no read is needed. */
  read({ path, file }: Reference): Promise<void> | undefined {
    const { result, fanOut } = this.#task
    if (!(result instanceof ResultFile) || !needsResult(path)) return undefined
    if (file !== undefined && fanOut !== undefined) return undefined
    this.#reading ??= this.#results.read(result).then(async (stored) => {
      this.#stored = 'lost' in stored ? stored : { value: await parsedResult(stored.json) }
    })
    return this.#reading
  }

  get isResultInFile(): boolean {
    return this.#task.result instanceof ResultFile
  }

  /** Frees a result that was read from its file. */
  forget(): void {
    this.#reading = undefined
    this.#stored = undefined
  }

  /** The part of the record that the reference needs. */
  at({ path, file }: Reference, fault: (text: string) => Error): object {
    const { fanOut } = this.#task
    if (file !== undefined && fanOut !== undefined) return { result: placesOfChildren(fanOut) }
    if (this.#stored === undefined || !needsResult(path)) return this.#record
    if ('lost' in this.#stored) throw fault(`task ${this.#task.id}: ${this.#stored.lost}`)
    return { ...this.#record, result: this.#stored.value }
  }

  /** Whether the record for callers hides a value at `pointer` or below, or anywhere in the array that its `*` crosses. */
  hides(pointer: string): boolean {
    return hidesAt(this.#record, this.#whole, splitAtStar(pointer)?.before ?? pointer)
  }
}

const needsResult = (pointer: string): boolean =>
  pointer === '' || pointer === '/result' || pointer.startsWith('/result/')

/** Where the files of each child are, as its result says it: the list of results has none of children that failed. */
function placesOfChildren(fanOut: FanOut<Task>): readonly unknown[] {
  return Array.from({ length: fanOut.count }, (_, i) => {
    const { handle } = fanOut.child(i).rare
    const { runtime = DEFAULT_RUNTIME } = handle ?? {}
    return handle?.isTaken && { task_id: handle.id, ...(runtime !== DEFAULT_RUNTIME && { placed_on: runtime }) }
  })
}

/** Parses the text of a result. Parses the members of an object, and the elements of a list, in steps. */
export async function parsedResult(json: string): Promise<unknown> {
  if (json.startsWith('[') && json.length >= LARGE_RESULT_CHARACTERS) {
    const wrapped = parseObjectWithArrays(Buffer.from(`{"list":${json}}`), { list: true })
    return ((await runCooperatively(wrapped)) as { readonly list: unknown }).list
  }
  if (!json.startsWith('{')) return JSON.parse(json)
  const members: [string, unknown][] = []
  await runCooperatively(parseMembers(Buffer.from(json), (name, value) => void members.push([name, value])))
  return Object.fromEntries(members)
}
