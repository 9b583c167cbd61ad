/**
 * References: `{"$from": id, "path": pointer, "default": value, "as": form}` stands for a value of another task. Pure.
 *
 * The pointer leads into the record of the other task, as callers see it. The value is inserted unchanged, or in the
 * form `as`. If the record has no value at the pointer, `default` is used, which may be null.
 *
 * A name `*` of the pointer crosses an array: the value is the array of what the rest of the pointer finds in each element.
 * In an object that has a member `*`, it is the name of that member.
 */

import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { isGiven, isObject, type JsonObject, jsonTypeOf } from '../../shared/text/json.ts'
import { jsonInText } from '../json/json-in-text.ts'
import { pointerFault, pointerValue, splitAtStar } from '../json/json-pointer.ts'
import { jsonBytes, jsonText } from '../json/pieces.ts'
import type { ElementPlaceholder } from './element-placeholder.ts'
import { filesValue } from './file-values.ts'
import { formIn, type InForm } from './form.ts'

export interface Reference extends InForm {
  /** The id of the referenced task. */
  readonly id: string
  /** A JSON Pointer into the record of that task. */
  readonly path: string
  readonly default?: { readonly value: unknown }
  /** A path in the workspace of that task, which the value names beside the id of the task in the runtime service. */
  readonly file?: string | ElementPlaceholder
}

export const REFERENCE_FIELDS = ['$from', 'path', 'default', 'as'] as const

/** The default of `path`. */
const DEFAULT_PATH = '/result'

/** Parses a reference. Returns the fault if it is invalid. */
export function referenceIn(object: Readonly<JsonObject>): Reference | string {
  const { $from: id, path, as } = object
  if (typeof id !== 'string' || id === '') return '$from: expected the id of a task'
  if (isGiven(path) && typeof path !== 'string') return 'path: expected a JSON Pointer'
  const fault = typeof path === 'string' ? pointerFault(path) : undefined
  if (fault !== undefined) return `path: ${fault}`
  if (typeof path === 'string' && splitAtStar(splitAtStar(path)?.after ?? '') !== undefined)
    return 'path: expected at most one "*"; let another task gather the inner arrays'
  const form = formIn(as)
  if (typeof form === 'string') return form
  return {
    id,
    path: typeof path === 'string' ? path : DEFAULT_PATH,
    ...(Object.hasOwn(object, 'default') && object.default !== undefined && { default: { value: object.default } }),
    ...form,
  }
}

/** The value of a reference with the bytes of its JSON, or the reason why there is no value. */
export type Referenced = { readonly value: unknown; readonly bytes: number } | { readonly fault: string }

/** The place of a referenced value, for error texts. */
export const placeOf = ({ id, path }: Reference): string => `${path === '' ? 'the record' : path} of task ${id}`

/** The value of `reference`. `record` is the record of the referenced task. */
export function* referencedValue(record: object, reference: Reference, maxBytes: number): Steps<Referenced> {
  const { id, file } = reference
  if (typeof file === 'object') throw new Error('the path of the file is not known')
  if (file !== undefined) return yield* filesValue((record as { readonly result?: unknown }).result, id, file)
  const crossed = splitAtStar(reference.path)
  const array = crossed === undefined ? undefined : pointerValue(record, crossed.before)
  const found =
    array?.found && array.value !== undefined && !hasStar(array.value)
      ? yield* gathered(record, array.value, reference, maxBytes)
      : yield* valueAt(record, reference, maxBytes)
  const tooLarge = `${placeOf(reference)} has more than ${maxBytes} bytes as JSON (the limit is --max-reference-bytes)`
  return found === TOO_LARGE ? { fault: tooLarge } : found
}

const hasStar = (value: unknown): boolean => isObject(value) && Object.hasOwn(value, '*')

/** The values in the elements of `array`, which the `*` of `reference` crosses. */
function* gathered(
  record: object,
  array: unknown,
  reference: Reference,
  maxBytes: number,
): Steps<Referenced | typeof TOO_LARGE> {
  const { before, after } = splitAtStar(reference.path)!
  if (!Array.isArray(array)) {
    const place = placeOf({ ...reference, path: before })
    return { fault: `${place} is no array, which "*" in a path crosses: it is ${typeText(array)}` }
  }
  const values: unknown[] = []
  const defaultBytes = reference.default && (yield* jsonBytes(reference.default.value, maxBytes))
  let bytes = Math.max(2, array.length + 1) // brackets and commas
  for (let i = 0; i < array.length; i++) {
    if (isYieldDue(i)) yield
    const element = { ...reference, path: `${before}/${i}${after}` }
    const found = yield* valueAt(record, element, maxBytes - bytes)
    if (found === TOO_LARGE || 'fault' in found) return found
    values.push(found.value)
    // Only a default has no bytes. It is repeated here, so it counts.
    bytes += found.bytes || (defaultBytes ?? Number.POSITIVE_INFINITY)
    if (bytes > maxBytes) return TOO_LARGE
  }
  return bytes > maxBytes ? TOO_LARGE : { value: values, bytes }
}

function* valueAt(record: object, reference: Reference, maxBytes: number): Steps<Referenced | typeof TOO_LARGE> {
  const { id, path, as } = reference
  const pointed = pointerValue(record, path)
  if (!pointed.found || pointed.value === undefined) {
    if (reference.default === undefined) return { fault: `task ${id} has no ${path}, and there is no default` }
    return { value: reference.default.value, bytes: 0 }
  }
  const { value } = pointed
  if (typeof value === 'string' && value.length > maxBytes) return TOO_LARGE
  const form = yield* inForm(value, as, maxBytes)
  if (form === TOO_LARGE) return TOO_LARGE
  if (typeof form === 'string') return { fault: `${placeOf(reference)} ${form}` }
  const bytes = yield* jsonBytes(form.value, maxBytes)
  return bytes === undefined ? TOO_LARGE : { value: form.value, bytes }
}

const TOO_LARGE = Symbol('too large')

/** The value in an element that `place` describes, in the form `as`. */
export function* elementInForm(value: unknown, as: Reference['as'], place: string): Steps<Referenced> {
  const form = yield* inForm(value, as, Number.POSITIVE_INFINITY)
  if (form === TOO_LARGE) throw new Error('there is no limit')
  if (typeof form === 'string') return { fault: `${place} ${form}` }
  return { value: form.value, bytes: (yield* jsonBytes(form.value, Number.POSITIVE_INFINITY))! }
}

/** `value` in the form `as`. Returns the actual form if `value` does not have the required one. */
function* inForm(
  value: unknown,
  as: Reference['as'],
  maxBytes: number,
): Steps<{ readonly value: unknown } | string | typeof TOO_LARGE> {
  switch (as) {
    case 'text':
      if (typeof value === 'string') return { value }
      return (yield* jsonBytes(value, maxBytes)) === undefined ? TOO_LARGE : { value: yield* jsonText(value) }
    case 'lines':
      return typeof value === 'string' ? { value: linesOf(value) } : `is no text with lines: it is ${typeText(value)}`
    case 'json':
      return typeof value === 'string' ? yield* jsonInText(value) : { value }
    default:
      return { value }
  }
}

/** The lines of `text` without line ends. A line end at the end of `text` does not start another line. */
function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}

const typeText = (value: unknown): string => {
  const type = jsonTypeOf(value)
  return type === 'null' ? type : `${type === 'array' || type === 'object' ? 'an' : 'a'} ${type}`
}
