/**
 * Placeholders for the element of a child of a task with `for_each`: `{"$item": pointer}` and `{"$index": true}`. Pure.
 */
import type { JsonObject } from '../../shared/text/json.ts'
import { pointerFault } from '../json/json-pointer.ts'
import { formIn, type InForm } from './form.ts'

export type ElementPlaceholder =
  /** `path` is a JSON Pointer into the element. */
  ({ readonly kind: 'item'; readonly path: string } & InForm) | ({ readonly kind: 'index' } & InForm)

/** The fields of each placeholder. */
export const ELEMENT_FIELDS = { $item: ['$item', 'as'], $index: ['$index', 'as'] } as const

/** Parses an object with `$item` or `$index`. Returns the fault if it is invalid. */
export const elementPlaceholderIn = ({ as, ...object }: Readonly<JsonObject>): ElementPlaceholder | string =>
  Object.hasOwn(object, '$item') ? itemIn(object.$item, as) : indexIn(object.$index, as)

function itemIn(path: unknown, as: unknown): ElementPlaceholder | string {
  if (typeof path !== 'string') return '$item: expected a JSON Pointer into the element ("" for all of it)'
  const fault = pointerFault(path)
  if (fault !== undefined) return `$item: ${fault}`
  const form = formIn(as)
  return typeof form === 'string' ? form : { kind: 'item', path, ...form }
}

function indexIn(value: unknown, as: unknown): ElementPlaceholder | string {
  if (value !== true) return '$index: expected true'
  const form = formIn(as, ['text', 'json']) // a number has no lines
  return typeof form === 'string' ? form : { kind: 'index', ...form }
}
