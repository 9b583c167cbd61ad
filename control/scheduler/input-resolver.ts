/**
 * Resolves the inputs of tasks with placeholders, when their attempts start.
 *
 * The values come from the parameters of the graph and from ended tasks of it, whose records do not change any more. The
 * first attempt notes its input as a change of the task, so it is on disk before the attempt acts. Later attempts, also
 * after a restart, get the noted input. Only the digest of a large one is noted; it is resolved again.
 */

import { HIDDEN_VALUE } from '../../shared/hidden-env.ts'
import { pointerValue } from '../../shared/json-pointer.ts'
import { runCooperatively, type Steps } from '../../shared/steps.ts'
import { quoted } from '../../shared/unknown-names.ts'
import { ExecutionError, invalidInput } from '../executors/executor.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { fill, findPlaceholders, type Place, type Places, pathText } from '../graph/placeholders.ts'
import { taskRecord, wholeRecord } from '../graph/record.ts'
import { type Reference, referencedValue } from '../graph/references.ts'
import { isKeptWhole, keptInput } from '../graph/resolved-input.ts'
import { ResultFile, type StoredResult } from '../graph/result-file.ts'
import { isWithinDepth, MAX_JSON_DEPTH } from '../json/depth.ts'
import { parseMembers } from '../json/large-json.ts'
import type { TaskStore } from '../store/tasks.ts'

/** Bytes of all values in one input together: a task may have thousands of references. */
export const MAX_RESOLVED_BYTES = 64 * 1024 * 1024

export interface InputResolverOptions {
  readonly store: TaskStore
  /** Bytes that the JSON of each referenced value may have. */
  readonly maxReferenceBytes: number
  readonly readResult: (file: ResultFile) => Promise<StoredResult>
}

export class InputResolver {
  readonly #options: InputResolverOptions

  constructor(options: InputResolverOptions) {
    this.#options = options
  }

  /**
   * The input of `task` with the values of its placeholders; a promise if a value is in a file or large. Throws
   * `invalid_input`, or `cancelled` after `signal`.
   */
  resolve(task: Task, signal: AbortSignal): unknown {
    const { resolvedInput } = task
    if (isKeptWhole(resolvedInput)) return resolvedInput
    const found = runCooperatively(findPlaceholders(task.input))
    if (found instanceof Promise) return found.then((places) => this.#fillIn(task, places, signal))
    return this.#fillIn(task, found, signal)
  }

  #fillIn(task: Task, { places, faults }: Places, signal: AbortSignal): unknown {
    const field = task.input === task.params ? 'params' : 'input'
    // Only a task of an earlier version, which did not know placeholders, has faults.
    for (const { path, text } of faults) throw invalidInput(`${pathText(field, path)}: ${text}`)
    const records = new Map<string, Records>()
    const reading: Promise<void>[] = []
    for (const { placeholder } of places) {
      if (placeholder.kind !== 'reference') continue
      const { id, path } = placeholder.reference
      const known = records.get(id) ?? this.#recordsOf(task, id)
      records.set(id, known)
      const read = known.read(path)
      if (read !== undefined) reading.push(read)
    }
    const work = () => runCooperatively(this.#resolved(task, { places, records, field }, signal))
    return reading.length === 0 ? work() : Promise.all(reading).then(work)
  }

  *#resolved(task: Task, { places, records, field }: Found, signal: AbortSignal): Steps<unknown> {
    const values: unknown[] = []
    let bytes = 0
    for (const { path, placeholder } of places) {
      if (signal.aborted) throw new ExecutionError('cancelled', 'ended before it was executed')
      const fault = (text: string) => invalidInput(`${pathText(field, path)}: ${text}`)
      if (placeholder.kind === 'literal') {
        values.push(placeholder.value)
      } else if (placeholder.kind === 'parameter') {
        values.push(parameterOf(task.graph, placeholder.name, fault))
      } else {
        const { reference } = placeholder
        const found = yield* this.#referenced(records.get(reference.id)!, reference, fault)
        bytes += found.bytes
        if (bytes > MAX_RESOLVED_BYTES) {
          throw fault(`the values of the references have more than ${MAX_RESOLVED_BYTES} bytes together`)
        }
        values.push(found.value)
      }
    }
    const input = yield* fill(task.input, places, values)
    if (!isWithinDepth(input)) {
      throw invalidInput(`${field}: nested deeper than ${MAX_JSON_DEPTH} levels with the values of its references`)
    }
    if (task.resolvedInput !== undefined) return input
    const kept = yield* keptInput(input)
    if (!signal.aborted) this.#options.store.apply({ kind: 'input-resolved', task, at: Date.now(), input: kept })
    return input
  }

  /** What `reference` in the field `field` of `task` stands for. Throws `invalid_input`. */
  async valueOf(task: Task, reference: Reference, field: string): Promise<unknown> {
    const records = this.#recordsOf(task, reference.id)
    await records.read(reference.path)
    const fault = (text: string) => invalidInput(`${field}: ${text}`)
    return (await runCooperatively(this.#referenced(records, reference, fault))).value
  }

  #recordsOf(task: Task, id: string): Records {
    const other = this.#options.store.taskIn(task.graph, id)
    if (other === undefined) throw invalidInput(`task ${task.id} references ${id}, which was deleted`)
    // A skipped dependency has not waited for all of its own.
    if (!other.isTerminal) throw invalidInput(`task ${task.id} references ${id}, which has not ended`)
    return new Records(other, this.#options.readResult)
  }

  *#referenced(records: Records, reference: Reference, fault: (text: string) => Error) {
    const record = records.at(reference.path, fault)
    const found = yield* referencedValue(record, reference, this.#options.maxReferenceBytes)
    if ('fault' in found) throw fault(found.fault)
    if (found.value === HIDDEN_VALUE && records.hides(reference.path)) {
      throw fault(`${reference.path} of task ${reference.id} is hidden, as all values of env are`)
    }
    return found
  }
}

/** What a task with placeholders needs. */
interface Found {
  readonly places: readonly Place[]
  /** Of the tasks that it references, by id. */
  readonly records: ReadonlyMap<string, Records>
  readonly field: string
}

/** The record of an ended task, as references see it. */
class Records {
  readonly #task: Task
  readonly #readResult: InputResolverOptions['readResult']
  readonly #record: Readonly<Record<string, unknown>>
  #reading: Promise<void> | undefined
  /** The result, from its file, or why it is lost. */
  #stored: { readonly value: unknown } | { readonly lost: string } | undefined

  constructor(task: Task, readResult: InputResolverOptions['readResult']) {
    this.#task = task
    this.#readResult = readResult
    // Both may change after the task has ended; a reference has one value for ever.
    const { replaced: _, result_file: __, ...record } = taskRecord(task)
    this.#record = record
  }

  /** Reads a result that is in a file, if `pointer` needs it. Undefined if there is nothing to wait for. */
  read(pointer: string): Promise<void> | undefined {
    const { result } = this.#task
    if (!(result instanceof ResultFile) || !needsResult(pointer)) return undefined
    this.#reading ??= this.#readResult(result).then(async (stored) => {
      this.#stored = 'lost' in stored ? stored : { value: await parsed(stored.json) }
    })
    return this.#reading
  }

  /** The record as far as `pointer` needs it. */
  at(pointer: string, fault: (text: string) => Error): object {
    if (this.#stored === undefined || !needsResult(pointer)) return this.#record
    if ('lost' in this.#stored) throw fault(`task ${this.#task.id}: ${this.#stored.lost}`)
    return { ...this.#record, result: this.#stored.value }
  }

  /** Whether callers see something else at `pointer` than the task has. */
  hides(pointer: string): boolean {
    const whole = pointerValue(wholeRecord(this.#task), pointer)
    return whole.found && whole.value !== HIDDEN_VALUE
  }
}

const needsResult = (pointer: string): boolean =>
  pointer === '' || pointer === '/result' || pointer.startsWith('/result/')

/** The value of `json`, which is the text of a result. The members of an object are parsed one by one. */
async function parsed(json: string): Promise<unknown> {
  if (!json.startsWith('{')) return JSON.parse(json)
  const members: [string, unknown][] = []
  await runCooperatively(parseMembers(Buffer.from(json), (name, value) => void members.push([name, value])))
  return Object.fromEntries(members)
}

/** Only whoever edits a state file takes a parameter from a graph. */
function parameterOf({ options: { params = {} } }: Graph, name: string, fault: (text: string) => Error): unknown {
  if (Object.hasOwn(params, name)) return params[name]
  throw fault(`the graph has no parameter ${quoted(name)}`)
}
