/**
 * Resolves the inputs of tasks with placeholders, when their attempts start.
 *
 * The values come from the parameters of the graph and from its ended tasks, whose records no longer change. The first
 * attempt records the resolved input as a change of the task, so the input is on disk before the attempt acts. Later
 * attempts get the same input, also after a restart. For a large input, the record holds its digest, and a file holds
 * the input until the task has ended.
 */

import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { quoted } from '../../shared/request/unknown-names.ts'
import { jsonTypeOf } from '../../shared/text/json.ts'
import { ExecutionError, invalidInput } from '../executors/executor.ts'
import { isWithinDepth, MAX_JSON_DEPTH } from '../json/depth.ts'
import { pointerValue } from '../json/json-pointer.ts'
import type { KeptResults } from '../log/keeper.ts'
import type { ElementPlaceholder } from '../rules/element-placeholder.ts'
import { fileFault } from '../rules/file-references.ts'
import { type DigestOfInput, digestToKeep, isKeptWhole } from '../rules/input-digest.ts'
import type { GraphPlaceholder } from '../rules/on-end.ts'
import { parameterBytes } from '../rules/parameters.ts'
import { fill, findPlaceholders, type Place, type Places, pathText, valueAt } from '../rules/placeholders.ts'
import { elementInForm, placeOf, type Reference, referencedValue } from '../rules/references.ts'
import { ResolvedSize } from '../rules/resolved-size.ts'
import { aboutCharacters, type ResultFile } from '../rules/result-file.ts'
import { InputWithSecrets, secretPlacesOf } from '../rules/secret-places.ts'
import { referencedSecretsFault } from '../rules/task-secrets.ts'
import type { Task } from '../task/graph.ts'
import { graphOutcome } from '../task/graph-outcome.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { GraphRoom } from './graph-room.ts'
import { parsedResult, ReferencedRecord } from './referenced-record.ts'

export class InputResolver {
  readonly #store: TaskStore
  readonly #results: Pick<KeptResults, 'keepInput' | 'read'>
  readonly #room: GraphRoom
  readonly #maxReferenceBytes: number

  /** `room` bounds what the inputs of a graph take, `maxReferenceBytes` each referenced value as JSON. */
  constructor(
    store: TaskStore,
    results: Pick<KeptResults, 'keepInput' | 'read'>,
    room: GraphRoom,
    maxReferenceBytes: number,
  ) {
    this.#store = store
    this.#results = results
    this.#room = room
    this.#maxReferenceBytes = maxReferenceBytes
  }

  /**
   * Resolves the input of `task`: an `InputWithSecrets` if it sends some. Returns a promise if a value is in a file or large.
   * Throws `invalid_input`, or `resource_limit_exceeded` if its graph may not store it, or `cancelled` after `signal` has fired.
   */
  resolve(task: Task, signal: AbortSignal): unknown {
    const { resolved_input: resolvedInput, input_file: inputFile } = task.rare
    if (isKeptWhole(resolvedInput))
      return this.#withPlaces(task, ({ places }) => withSecrets(task, places, resolvedInput))
    return inputFile === undefined ? this.#resolved(task, signal) : this.#fromFile(task, inputFile, signal)
  }

  /** The input of an earlier attempt. */
  async #fromFile(task: Task, file: ResultFile, signal: AbortSignal): Promise<unknown> {
    const stored = await this.#results.read(file)
    if ('lost' in stored) return this.#resolved(task, signal)
    return this.#withPlaces(task, ({ places }) => withSecrets(task, places, parsedResult(stored.json)))
  }

  #resolved(task: Task, signal: AbortSignal): unknown {
    return this.#withPlaces(task, (places) => {
      const filled = this.#fillIn(task, places, signal)
      return filled instanceof Promise
        ? filled.then((input) => withSecrets(task, places.places, input))
        : withSecrets(task, places.places, filled)
    })
  }

  /** What `use` makes of the placeholders of `task`. */
  #withPlaces(task: Task, use: (places: Places) => unknown): unknown {
    const { childOf } = task
    const known = childOf?.placesOf(task)
    if (known !== undefined) return use(known)
    const useFound = (places: Places) => {
      childOf?.keepPlaces(task, places)
      return use(places)
    }
    const found = runCooperatively(findPlaceholders(task.input))
    return found instanceof Promise ? found.then(useFound) : useFound(found)
  }

  #fillIn(task: Task, { places, faults }: Places, signal: AbortSignal): unknown {
    const field = task.input === task.params ? 'params' : 'input'
    // Faults are possible only in tasks of an earlier version, which had no placeholders.
    for (const { path, text } of faults) throw invalidInput(`${pathText(field, path)}: ${text}`)
    const filling: Filling = { task, field, places, values: [], size: new ResolvedSize(), signal }
    const sources = this.#sourcesOf(filling)
    const isReading = sources.some(({ record }) => record.isResultInFile)
    const filled = isReading
      ? this.#filledFromFiles(filling, sources)
      : runCooperatively(this.#filled(filling, sources))
    return filled instanceof Promise
      ? filled.then((input) => this.#noted(filling, input))
      : this.#noted(filling, filled)
  }

  /** The referenced tasks, each with the places of its values. */
  #sourcesOf({ task, places }: Filling): Source[] {
    const sources = new Map<string, { record: ReferencedRecord; positions: number[] }>()
    for (let i = 0; i < places.length; i++) {
      const { placeholder } = places[i]!
      if (placeholder.kind !== 'reference') continue
      const { id } = placeholder.reference
      const known = sources.get(id)
      if (known === undefined) sources.set(id, { record: this.#recordOf(task, id), positions: [i] })
      else known.positions.push(i)
    }
    return [...sources.values()]
  }

  *#filled(filling: Filling, sources: readonly Source[]): Steps<unknown> {
    yield* givenValues(filling)
    for (const source of sources) yield* this.#referencedValues(filling, source)
    return yield* this.#inputOf(filling)
  }

  /** As `#filled`, for values in files. Reads one file after the other, and keeps only the referenced values. */
  async #filledFromFiles(filling: Filling, sources: readonly Source[]): Promise<unknown> {
    await runCooperatively(givenValues(filling))
    for (const source of sources) {
      throwIfEnded(filling)
      const { record, positions } = source
      for (const i of positions) await record.read(referenceAt(filling, i))
      await runCooperatively(this.#referencedValues(filling, source))
      record.forget()
    }
    return await runCooperatively(this.#inputOf(filling))
  }

  *#referencedValues(filling: Filling, { record, positions }: Source): Steps<void> {
    for (const i of positions) {
      throwIfEnded(filling)
      const fault = faultAt(filling, i)
      const reference = yield* withKnownFile(filling.task, referenceAt(filling, i), fault)
      const { value, bytes } = yield* this.#referenced(record, reference, fault)
      const tooLarge = filling.size.add(bytes)
      if (tooLarge !== undefined) throw fault(tooLarge)
      filling.values[i] = value
    }
  }

  *#inputOf(filling: Filling): Steps<unknown> {
    const { task, field, places, values } = filling
    throwIfEnded(filling)
    const input = yield* fill(task.input, places, values)
    const fault = referencedSecretsFault(task.type, places, input)
    if (fault !== undefined) throw invalidInput(`${field}: ${fault}`)
    if (!isWithinDepth(input)) {
      throw invalidInput(`${field}: nested deeper than ${MAX_JSON_DEPTH} levels with the values of its references`)
    }
    return input
  }

  /** Records `input` for all attempts, and returns it. Returns a promise if it is large. */
  #noted({ task, places, signal }: Filling, input: unknown): unknown {
    if (task.rare.resolved_input !== undefined || signal.aborted) return input
    const digest = runCooperatively(digestToKeep(input))
    if (digest !== undefined)
      return this.#notedLarge(task, { input, digest, isLasting: !places.some(isReference) }, signal)
    this.#room.checkInput(task.graph, aboutCharacters(input))
    this.#store.apply({ kind: 'input-resolved', task, at: Date.now(), input })
    return input
  }

  async #notedLarge(task: Task, { input, digest, isLasting }: LargeInput, signal: AbortSignal): Promise<unknown> {
    const kept = (await digest)!
    const bytes = isLasting ? 0 : kept.length
    this.#room.checkInput(task.graph, bytes)
    const release = this.#room.reserve(task.graph, bytes)
    try {
      const file = isLasting ? undefined : await this.#results.keepInput(task, input)
      if (!signal.aborted)
        this.#store.apply({ kind: 'input-resolved', task, at: Date.now(), input: kept, ...(file && { file }) })
      else if (file !== undefined) this.#store.onResultDropped(file)
      return input
    } finally {
      release()
    }
  }

  /** The value of `reference` in the field `field` of `task`. Throws `invalid_input`. */
  async valueOf(task: Task, reference: Reference, field: string): Promise<unknown> {
    const record = this.#recordOf(task, reference.id)
    await record.read(reference)
    const fault = (text: string) => invalidInput(`${field}: ${text}`)
    return (await runCooperatively(this.#referenced(record, reference, fault))).value
  }

  #recordOf(task: Task, id: string): ReferencedRecord {
    const sibling = task.childOf?.siblingOf(task, id)
    const other =
      sibling === undefined ? this.#store.taskIn(task.graph, id) : this.#store.hasRecord(sibling) ? sibling : undefined
    if (other === undefined) throw invalidInput(`task ${task.id} references ${id}, which was deleted`)
    // A skipped dependency may have been skipped before its own dependencies had ended.
    if (!other.isTerminal) throw invalidInput(`task ${task.id} references ${id}, which has not ended`)
    return new ReferencedRecord(other, this.#results)
  }

  *#referenced(record: ReferencedRecord, reference: Reference, fault: (text: string) => Error) {
    const value = record.at(reference, fault)
    if (record.hides(reference.path)) throw fault(`${placeOf(reference)} holds a hidden value of env`)
    const found = yield* referencedValue(value, reference, this.#maxReferenceBytes)
    if ('fault' in found) throw fault(found.fault)
    return found
  }
}

/** `input` with the places of the secrets that the task sends; the input itself if it sends none. */
function withSecrets(task: Task, places: readonly Place[], input: unknown): unknown {
  const secrets = secretPlacesOf(task, places)
  return secrets.length === 0 ? input : new InputWithSecrets(input, secrets)
}

/** An input during its resolution. */
interface Filling {
  readonly task: Task
  readonly field: string
  readonly places: readonly Place[]
  /** The values of the places. */
  readonly values: unknown[]
  readonly size: ResolvedSize
  readonly signal: AbortSignal
}

interface LargeInput {
  readonly input: unknown
  readonly digest: DigestOfInput | Promise<DigestOfInput | undefined>
  /** Whether all values come from the graph itself, so that no file is needed. */
  readonly isLasting: boolean
}

/** A referenced task. */
interface Source {
  readonly record: ReferencedRecord
  /** Indexes of the places of its values. */
  readonly positions: readonly number[]
}

const isReference = ({ placeholder }: Place): boolean => placeholder.kind === 'reference'

/** Fills in the values of literals and parameters. */
function* givenValues(filling: Filling): Steps<void> {
  const { task, places, values, size } = filling
  for (let i = 0; i < places.length; i++) {
    const { placeholder } = places[i]!
    if (isYieldDue(i)) yield
    if (placeholder.kind === 'literal') {
      values[i] = placeholder.value
    } else if (placeholder.kind === 'parameter') {
      const { params = {} } = task.graph.options
      const { name } = placeholder
      const fault = faultAt(filling, i)
      // A parameter can be missing only after an edit of the state file.
      if (!Object.hasOwn(params, name)) throw fault(`the graph has no parameter ${quoted(name)}`)
      const tooLarge = size.add(yield* parameterBytes(params, name))
      if (tooLarge !== undefined) throw fault(tooLarge)
      values[i] = params[name]
    } else if (placeholder.kind === 'secret') {
      values[i] = valueAt(task.input, places[i]!.path) // what is kept has the name
    } else if (placeholder.kind !== 'reference') {
      const given = placeholder.kind === 'graph' ? graphValue : elementValue
      const { value, bytes } = yield* given(task, placeholder as never, faultAt(filling, i))
      const tooLarge = size.add(bytes)
      if (tooLarge !== undefined) throw faultAt(filling, i)(tooLarge)
      values[i] = value
    }
  }
}

/** What `$item` and `$index` stand for in a child. In a task of an earlier version, which did not know them, they are data. */
function* elementValue(
  task: Task,
  placeholder: ElementPlaceholder,
  fault: (text: string) => Error,
): Steps<{ readonly value: unknown; readonly bytes: number }> {
  const { childOf } = task
  const { as } = placeholder
  if (childOf === undefined) {
    const value = placeholder.kind === 'item' ? { $item: placeholder.path } : { $index: true }
    return { value: as === undefined ? value : { ...value, as }, bytes: 0 }
  }
  const index = childOf.indexOf(task)
  if (placeholder.kind === 'index') return { value: as === 'text' ? String(index) : index, bytes: 0 }
  const { path } = placeholder
  const item = childOf.itemOf(task)
  const pointed = item === undefined ? undefined : pointerValue(item.value, path)
  if (!pointed?.found || pointed.value === undefined)
    throw fault(`element ${index} of ${childOf.parent.id} has no ${path}`)
  const element = `element ${index} of ${childOf.parent.id}`
  const found = yield* elementInForm(pointed.value, as, path === '' ? element : `${path} of ${element}`)
  if ('fault' in found) throw fault(found.fault)
  return found
}

/** What `$graph` stands for in a task of `on_end`. */
function* graphValue(
  task: Task,
  { path, as, default: otherwise }: GraphPlaceholder,
  fault: (text: string) => Error,
): Steps<{ readonly value: unknown; readonly bytes: number }> {
  const pointed = pointerValue(yield* graphOutcome(task.graph), path)
  const value = pointed.found ? (pointed.value ?? otherwise?.value) : otherwise?.value
  if (value === undefined) throw fault(`the graph has no ${path}, and there is no default`)
  const found = yield* elementInForm(value, as, `${path} of the graph`)
  if ('fault' in found) throw fault(found.fault)
  return found
}

/** `reference` with the path of its file, which the element of a child may be. */
function* withKnownFile(task: Task, reference: Reference, fault: (text: string) => Error): Steps<Reference> {
  const { file } = reference
  if (typeof file !== 'object') return reference
  const { value } = yield* elementValue(task, file, (text) => fault(`file: ${text}`))
  const path = file.kind === 'index' ? String(value) : value
  if (typeof path !== 'string') throw fault(`file: expected a text, got ${jsonTypeOf(path)} ("as" may be text)`)
  const wrong = fileFault(path)
  if (wrong !== undefined) throw fault(wrong)
  return { ...reference, file: path }
}

const faultAt =
  ({ field, places }: Filling, i: number) =>
  (text: string) =>
    invalidInput(`${pathText(field, places[i]!.path)}: ${text}`)

function referenceAt({ places }: Filling, i: number): Reference {
  const { placeholder } = places[i]!
  if (placeholder.kind !== 'reference') throw new Error('not the place of a reference')
  return placeholder.reference
}

function throwIfEnded({ signal }: Filling): void {
  if (signal.aborted) throw new ExecutionError('cancelled', 'ended before it was executed')
}
