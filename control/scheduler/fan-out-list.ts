/** Determines the list for which a task with `for_each` has children, once, when the task may run. */
import { jsonTypeOf } from '../../shared/text/json.ts'
import { ExecutionError, invalidInput } from '../executors/executor.ts'
import { type ListSource, listSource } from '../rules/fan-out-rule.ts'
import { placeOf } from '../rules/references.ts'
import type { Task } from '../task/graph.ts'
import type { InputResolver } from './input-resolver.ts'

export interface FanOutListOptions {
  readonly inputs: Pick<InputResolver, 'valueOf'>
  /** Elements that a list may have. */
  readonly maxFanOut: number
  /** Makes room for tasks; the reason why there is none. */
  readonly roomFor: (count: number) => string | undefined
}

/** The elements for `task`; a promise where they are a value of another task. Throws `ExecutionError`. */
export function fanOutList(task: Task, options: FanOutListOptions): readonly unknown[] | Promise<readonly unknown[]> {
  const source = listSource(task.options.for_each)
  if (typeof source === 'string') throw invalidInput(`for_each: ${source}`) // a hand wrote it into a state file
  if (source.kind !== 'reference') return checked(source, givenValue(task, source), options)
  return options.inputs.valueOf(task, source.reference, 'for_each').then((value) => checked(source, value, options))
}

const givenValue = (task: Task, source: Exclude<ListSource, { kind: 'reference' }>): unknown =>
  source.kind === 'list' ? source.list : task.graph.options.params?.[source.name]

function checked(source: ListSource, value: unknown, { maxFanOut, roomFor }: FanOutListOptions): readonly unknown[] {
  if (!Array.isArray(value)) throw invalidInput(noListText(source, value))
  const { length } = value
  if (length > maxFanOut) throw tooMany(tooLongText(length, maxFanOut))
  const fault = length === 0 ? undefined : roomFor(length)
  if (fault !== undefined) throw tooMany(`for_each: ${fault}`)
  return value
}

const tooMany = (message: string): Error => new ExecutionError('resource_limit_exceeded', message)

const noListText = (source: ListSource, value: unknown): string => {
  const place =
    source.kind === 'reference'
      ? placeOf(source.reference)
      : source.kind === 'parameter'
        ? `parameter ${source.name}`
        : 'it'
  const isText = source.kind === 'reference' && typeof value === 'string'
  return `for_each: ${place} is no list: it is of type ${jsonTypeOf(value)}${isText ? ' ("as" may be json or lines)' : ''}`
}

/** The error for a list of `length` elements. */
export const tooLongText = (length: number, maxFanOut: number): string =>
  `for_each: the list has ${length} elements, but at most ${maxFanOut} are allowed (--max-fan-out)`
