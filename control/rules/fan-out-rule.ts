/**
 * Fan-out: a task with `for_each` runs once for each element of a list, as its children `<id>[0]`, `<id>[1]` and so on. Pure.
 *
 * The list stands in the task, or is a parameter of the graph, or a value of a task before it. Its elements are data: nobody
 * looks for placeholders in them.
 */
import { isObject, type JsonObject, jsonTypeOf } from '../../shared/text/json.ts'
import { hasPlaceholderName, placeholderIn } from './placeholders.ts'
import type { Reference } from './references.ts'

/** The fields of a task that runs for each element of a list, as submitted. */
export interface FanOutRule {
  readonly for_each: unknown
  readonly max_parallel?: number
  readonly fail_fast?: boolean
}

/** Where a list comes from. */
export type ListSource =
  | { readonly kind: 'list'; readonly list: readonly unknown[] }
  | { readonly kind: 'parameter'; readonly name: string }
  | { readonly kind: 'reference'; readonly reference: Reference }

const EXPECTED = 'expected a list, or an object with $from, $param or $literal'

/** The source of the list that the field `for_each` names, or what is wrong with it: completes `for_each: `. */
export function listSource(forEach: unknown): ListSource | string {
  if (Array.isArray(forEach)) return { kind: 'list', list: forEach }
  if (!isObject(forEach) || !hasPlaceholderName(forEach)) return EXPECTED
  const placeholder = placeholderIn(forEach as JsonObject)
  if (typeof placeholder === 'string') return placeholder
  switch (placeholder.kind) {
    case 'reference':
      return placeholder.reference.file === undefined ? placeholder : '"file" beside "$from" is no list'
    case 'parameter':
      return placeholder
    case 'literal': {
      const { value } = placeholder
      return Array.isArray(value)
        ? { kind: 'list', list: value }
        : `$literal: expected a list, got ${jsonTypeOf(value)}`
    }
    default:
      return EXPECTED
  }
}

/** Whether the list is the value of another task. */
export const isReferenceToList = (forEach: unknown): boolean => isObject(forEach) && Object.hasOwn(forEach, '$from')

/** Whether a submitted task has a field of fan-out. */
export const hasFanOut = ({
  for_each,
  max_parallel,
  fail_fast,
}: {
  readonly for_each?: unknown
  readonly max_parallel?: unknown
  readonly fail_fast?: unknown
}): boolean => for_each != null || max_parallel != null || fail_fast != null
