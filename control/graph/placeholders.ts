/**
 * Placeholders: objects in `params` and `input` of a task that stand for another value when the task starts. Pure.
 *
 * There are three: `{"$from": id, ...}` is a value of an ended task (`references.ts`), `{"$param": name}` a parameter of the
 * graph (`parameters.ts`), and `{"$literal": value}` is `value` itself, whatever that looks like. An object with one of these
 * three names and any other name beside it is a mistake. What is filled in is never searched again, so a value from outside
 * stays data, and texts are never put together.
 */

import { MAX_DRY_RUN_ERRORS } from '../../shared/contract/graph-dry-run.ts'
import { isObject, type JsonObject } from '../../shared/json.ts'
import { nearestName } from '../../shared/nearest-name.ts'
import { isYieldDue, type Steps } from '../../shared/steps.ts'
import { didYouMean, quoted } from '../../shared/unknown-names.ts'
import { MAX_JSON_DEPTH } from '../json/depth.ts'
import { setMember } from './plain-json.ts'
import { REFERENCE_FIELDS, type Reference, referenceIn } from './references.ts'

export type Placeholder =
  | { readonly kind: 'reference'; readonly reference: Reference }
  | { readonly kind: 'parameter'; readonly name: string }
  | { readonly kind: 'literal'; readonly value: unknown }

/** Names and indexes that lead from a value to a value in it. */
export type Path = readonly (string | number)[]

/** Where a value has a placeholder. */
export interface Place {
  readonly path: Path
  readonly placeholder: Placeholder
}

/** An object that is no placeholder, though it has the name of one. */
export interface PlaceFault {
  readonly path: Path
  /** Completes `params.args[1]: `. */
  readonly text: string
}

export interface Places {
  readonly places: readonly Place[]
  readonly faults: readonly PlaceFault[]
}

/** Placeholders of one task. */
export const MAX_PLACEHOLDERS = 10_000

/** Faults of one task that are looked for: a dry run names one less in a whole graph, and says that there are more. */
export const MAX_PLACE_FAULTS = MAX_DRY_RUN_ERRORS + 1

const NAMES = ['$from', '$param', '$literal'] as const

/** Whether `object` is meant to be a placeholder. */
export const hasPlaceholderName = (object: object): boolean => NAMES.some((name) => Object.hasOwn(object, name))

/** Whether `value`, which is within the depth that a task may have, has a placeholder. */
export function hasPlaceholder(value: unknown, levels = MAX_JSON_DEPTH): boolean {
  if (value === null || typeof value !== 'object' || levels === 0) return false
  if (Array.isArray(value)) return value.some((member) => hasPlaceholder(member, levels - 1))
  if (hasPlaceholderName(value)) return true
  for (const name in value) if (hasPlaceholder((value as JsonObject)[name], levels - 1)) return true
  return false
}

/** Bytes searched at a time: about 0.1 ms. */
const BYTES_PER_SEARCH = 1024 * 1024

/** How a name that begins with `$` may begin in the text of JSON. */
const PLAIN_START = Buffer.from('"$')
const ESCAPED_START = Buffer.from('\\u0024')

/** Whether the text of a graph may have a placeholder. Graphs without any pay only this search. */
export function mentionsPlaceholder(body: Uint8Array): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return bytes.includes(PLAIN_START) || bytes.includes(ESCAPED_START)
}

/** As `mentionsPlaceholder`, in steps. */
export function* mentionsPlaceholderInSteps(body: Uint8Array): Steps<boolean> {
  const overlap = ESCAPED_START.length - 1
  for (let at = 0; at < body.length; at += BYTES_PER_SEARCH) {
    if (mentionsPlaceholder(body.subarray(at, at + BYTES_PER_SEARCH + overlap))) return true
    yield
  }
  return false
}

/** A container whose members are being looked at. `keys` is undefined for an array. */
interface Open {
  readonly container: object
  readonly keys: readonly string[] | undefined
  readonly length: number
  next: number
}

/** The placeholders in `value`, in its order, up to the limits. */
export function* findPlaceholders(value: unknown): Steps<Places> {
  const places: Place[] = []
  const faults: PlaceFault[] = []
  const stack: Open[] = []
  const path: (string | number)[] = []
  const look = (found: unknown) => {
    if (typeof found !== 'object' || found === null) return
    if (isObject(found) && hasPlaceholderName(found)) {
      const placeholder = placeholderIn(found)
      if (typeof placeholder === 'string') faults.push({ path: [...path], text: placeholder })
      else places.push({ path: [...path], placeholder })
      return
    }
    const keys = Array.isArray(found) ? undefined : Object.keys(found)
    stack.push({ container: found, keys, length: keys?.length ?? (found as unknown[]).length, next: 0 })
  }
  look(value)
  let steps = 0
  for (let open = stack.at(-1); open !== undefined; open = stack.at(-1)) {
    if (isYieldDue(steps++)) yield
    path.length = stack.length - 1
    if (open.next === open.length) {
      stack.pop()
      continue
    }
    const at = open.next++
    const name: string | number = open.keys?.[at] ?? at
    path.push(name)
    look((open.container as Record<string | number, unknown>)[name])
    if (faults.length === MAX_PLACE_FAULTS) break
    if (places.length > MAX_PLACEHOLDERS) {
      faults.push({ path: [...path], text: `expected at most ${MAX_PLACEHOLDERS} placeholders in a task` })
      break
    }
  }
  return { places, faults }
}

/** The placeholder that `object` is, or what is wrong with it. */
export function placeholderIn(object: Readonly<JsonObject>): Placeholder | string {
  const name = NAMES.find((each) => Object.hasOwn(object, each))!
  const known: readonly string[] = name === '$from' ? REFERENCE_FIELDS : [name]
  const other = Object.keys(object).find((key) => !known.includes(key))
  if (other !== undefined) {
    return `unknown field ${quoted(other)} beside ${quoted(name)}${didYouMean(nearestName(other, known))}`
  }
  const value = object[name]
  if (name === '$literal') return { kind: 'literal', value }
  if (name === '$param') {
    return typeof value === 'string' ? { kind: 'parameter', name: value } : '$param: expected the name of a parameter'
  }
  const reference = referenceIn(object)
  return typeof reference === 'string' ? reference : { kind: 'reference', reference }
}

/** `value` with `values` in the places of the placeholders. Only what leads to a place is copied. */
export function* fill(value: unknown, places: readonly Place[], values: readonly unknown[]): Steps<unknown> {
  const copies = new Map<object, JsonObject>()
  const copyOf = (original: unknown): JsonObject => {
    const known = copies.get(original as object)
    if (known !== undefined) return known
    const copy = (Array.isArray(original) ? [...original] : { ...(original as object) }) as JsonObject
    copies.set(original as object, copy)
    return copy
  }
  for (let i = 0; i < places.length; i++) {
    const { path } = places[i]!
    if (path.length === 0) return values[i]
    let original = value
    let copy = copyOf(original)
    for (const name of path.slice(0, -1)) {
      original = (original as JsonObject)[name]
      const inner = copyOf(original)
      setMember(copy, String(name), inner)
      copy = inner
    }
    setMember(copy, String(path.at(-1)), values[i])
    if (isYieldDue(i)) yield
  }
  return places.length === 0 ? value : copyOf(value)
}

/** Characters of a path in an error text; a longer one is cut. */
const MAX_PATH_CHARACTERS = 200

/** A path for an error text: `params.args[1]`. */
export function pathText(field: string, path: Path): string {
  let text = field
  for (const name of path) {
    text += typeof name === 'number' ? `[${name}]` : /^[\w-]+$/.test(name) ? `.${name}` : `[${quoted(name)}]`
    if (text.length > MAX_PATH_CHARACTERS) return `${text.slice(0, MAX_PATH_CHARACTERS)}...`
  }
  return text
}
