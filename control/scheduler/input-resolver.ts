/**
 * Resolves the inputs of tasks with placeholders, when their attempts start.
 *
 * The values come from the parameters of the graph and from ended tasks of it, whose records do not change any more. The
 * first attempt notes its input as a change of the task, so it is on disk before the attempt acts. Later attempts, also
 * after a restart, get the noted input. Only the digest of a large one is noted; it is resolved again.
 */

import { HIDDEN_VALUE } from '../../shared/hidden-env.ts'
import { pointerValue } from '../../shared/json-pointer.ts'
import { runCooperatively } from '../../shared/steps.ts'
import { quoted } from '../../shared/unknown-names.ts'
import { ExecutionError, invalidInput } from '../executors/executor.ts'
import type { Graph, Task } from '../graph/graph.ts'
import { fill, findPlaceholders, type Place, pathText } from '../graph/placeholders.ts'
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

  /** The input of `task` with the values of its placeholders. Throws `invalid_input`, or `cancelled` after `signal`. */
  async resolve(task: Task, signal: AbortSignal): Promise<unknown> {
    const { resolvedInput } = task
    if (isKeptWhole(resolvedInput)) return resolvedInput
    const { places, faults } = await runCooperatively(findPlaceholders(task.input))
    const field = task.input === task.params ? 'params' : 'input'
    // Only a task of an earlier version, which did not know placeholders, has faults.
    for (const { path, text } of faults) throw invalidInput(`${pathText(field, path)}: ${text}`)
    const values = await this.#valuesOf(task, places, field, signal)
    const input = await runCooperatively(fill(task.input, places, values))
    if (!isWithinDepth(input)) {
      throw invalidInput(`${field}: nested deeper than ${MAX_JSON_DEPTH} levels with the values of its references`)
    }
    if (resolvedInput === undefined) await this.#note(task, input, signal)
    return input
  }

  /** What `reference` in the field `field` of `task` stands for. Throws `invalid_input`. */
  async valueOf(task: Task, reference: Reference, field: string): Promise<unknown> {
    const fault = (text: string) => invalidInput(`${field}: ${text}`)
    return (await this.#referenced(this.#recordsOf(task, reference.id), reference, fault)).value
  }

  async #note(task: Task, input: unknown, signal: AbortSignal): Promise<void> {
    const kept = await runCooperatively(keptInput(input))
    if (!signal.aborted) this.#options.store.apply({ kind: 'input-resolved', task, at: Date.now(), input: kept })
  }

  async #valuesOf(task: Task, places: readonly Place[], field: string, signal: AbortSignal): Promise<unknown[]> {
    const records = new Map<string, Records>()
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
        const known = records.get(reference.id) ?? this.#recordsOf(task, reference.id)
        records.set(reference.id, known)
        const found = await this.#referenced(known, reference, fault)
        bytes += found.bytes
        if (bytes > MAX_RESOLVED_BYTES) {
          throw fault(`the values of the references have more than ${MAX_RESOLVED_BYTES} bytes together`)
        }
        values.push(found.value)
      }
    }
    return values
  }

  #recordsOf(task: Task, id: string): Records {
    const other = this.#options.store.taskIn(task.graph, id)
    if (other === undefined) throw invalidInput(`task ${task.id} references ${id}, which was deleted`)
    // A skipped dependency has not waited for all of its own.
    if (!other.isTerminal) throw invalidInput(`task ${task.id} references ${id}, which has not ended`)
    return new Records(other, this.#options.readResult)
  }

  async #referenced(records: Records, reference: Reference, fault: (text: string) => Error) {
    const record = await records.at(reference.path, fault)
    const found = await runCooperatively(referencedValue(record, reference, this.#options.maxReferenceBytes))
    if ('fault' in found) throw fault(found.fault)
    if (found.value === HIDDEN_VALUE && records.hides(reference.path)) {
      throw fault(`${reference.path} of task ${reference.id} is hidden, as all values of env are`)
    }
    return found
  }
}

/** The record of an ended task, as references see it. */
class Records {
  readonly #task: Task
  readonly #readResult: InputResolverOptions['readResult']
  readonly #record: Readonly<Record<string, unknown>>
  #stored: Promise<unknown> | undefined

  constructor(task: Task, readResult: InputResolverOptions['readResult']) {
    this.#task = task
    this.#readResult = readResult
    // Both may change after the task has ended; a reference has one value for ever.
    const { replaced: _, result_file: __, ...record } = taskRecord(task)
    this.#record = record
  }

  /** The record, with a result that is in a file only if `pointer` needs it. */
  async at(pointer: string, fault: (text: string) => Error): Promise<object> {
    const { result: file } = this.#task
    const needsResult = pointer === '' || pointer === '/result' || pointer.startsWith('/result/')
    if (!(file instanceof ResultFile) || !needsResult) return this.#record
    this.#stored ??= this.#readResult(file).then((stored) => {
      if ('lost' in stored) throw fault(`task ${this.#task.id}: ${stored.lost}`)
      return parsed(stored.json)
    })
    return { ...this.#record, result: await this.#stored }
  }

  /** Whether callers see something else at `pointer` than the task has. */
  hides(pointer: string): boolean {
    const whole = pointerValue(wholeRecord(this.#task), pointer)
    return whole.found && whole.value !== HIDDEN_VALUE
  }
}

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
