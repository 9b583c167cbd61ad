/** Determines the list for which a task has children, once, when the task may run. A group without `for_each` has one element. */
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
  const { for_each, tasks } = task.options
  const width = tasks?.length ?? 1
  if (for_each === undefined) return checkedSize(NO_LIST, width, options)
  const source = listSource(for_each)
  if (typeof source === 'string') throw invalidInput(`for_each: ${source}`) // a hand wrote it into a state file
  if (source.kind !== 'reference') return checked(source, givenValue(task, source), width, options)
  return options.inputs
    .valueOf(task, source.reference, 'for_each')
    .then((value) => checked(source, value, width, options))
}

const givenValue = (task: Task, source: Exclude<ListSource, { kind: 'reference' }>): unknown =>
  source.kind === 'list' ? source.list : task.graph.options.params?.[source.name]

/** The element of a group without `for_each`, which its members cannot name. */
const NO_LIST: readonly unknown[] = [null]

function checked(source: ListSource, value: unknown, width: number, options: FanOutListOptions): readonly unknown[] {
  if (!Array.isArray(value)) throw invalidInput(noListText(source, value))
  return checkedSize(value, width, options)
}

function checkedSize(list: readonly unknown[], width: number, { maxFanOut, roomFor }: FanOutListOptions) {
  const { length } = list
  const field = list === NO_LIST ? 'tasks' : 'for_each'
  if (length * width > maxFanOut) throw tooMany(`${field}: ${tooLongText(length, width, maxFanOut)}`)
  const fault = length === 0 ? undefined : roomFor(length * width)
  if (fault !== undefined) throw tooMany(`${field}: ${fault}`)
  return list
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

/** The error for a list of `length` elements, of `width` children each. */
export const tooLongText = (length: number, width: number, maxFanOut: number): string =>
  width === 1
    ? `the list has ${length} elements, but at most ${maxFanOut} are allowed (--max-fan-out)`
    : `${length} × ${width} tasks are ${length * width} children, but at most ${maxFanOut} are allowed (--max-fan-out)`
