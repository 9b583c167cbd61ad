/**
 * Placeholders: objects in `params` and `input` of a task that are replaced by values when the task starts. Pure.
 *
 * `{"$from": id, ...}` is a value of an ended task (`references.ts`). `{"$param": name}` is a parameter of the graph
 * (`parameters.ts`). `{"$literal": value}` is `value` itself, even if it looks like a placeholder. In a child of a task with
 * `for_each`, `{"$item": pointer}` is its element or a value in that, and `{"$index": true}` the index of the element, from
 * 0; both also in the form `as`. `{"$graph": pointer}` is a value of the graph (`on-end.ts`). `{"$secret": name}` is a
 * secret, which stays as it is until a request needs the value (`secret-places.ts`). An object with one of these names and an
 * unexpected other name is an error. Inserted values are never searched for
 * placeholders, and never joined with other text, so they stay data.
 */

import { MAX_DRY_RUN_ERRORS } from '../../shared/contract/graph-dry-run.ts'
import { SECRET_TEXT_FIELDS } from '../../shared/contract/secrets.ts'
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { type SecretText, secretTextIn } from '../../shared/request/secret-text.ts'
import { didYouMean, quoted } from '../../shared/request/unknown-names.ts'
import { isObject, type JsonObject } from '../../shared/text/json.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import { MAX_JSON_DEPTH } from '../json/depth.ts'
import { ELEMENT_FIELDS, type ElementPlaceholder, elementPlaceholderIn } from './element-placeholder.ts'
import { FILE_REFERENCE_FIELDS, fileReferenceIn, isInputPath, MISPLACED_FILE } from './file-references.ts'
import { GRAPH_PLACEHOLDER_FIELDS, type GraphPlaceholder, graphPlaceholderIn } from './on-end.ts'
import { setMember } from './plain-json.ts'
import { REFERENCE_FIELDS, type Reference, referenceIn } from './references.ts'

export type Placeholder =
  | { readonly kind: 'reference'; readonly reference: Reference }
  | { readonly kind: 'parameter'; readonly name: string }
  | { readonly kind: 'literal'; readonly value: unknown }
  | { readonly kind: 'secret'; readonly secret: SecretText }
  | ElementPlaceholder
  | GraphPlaceholder

/** The path from a value to a value inside it. */
export type Path = readonly (string | number)[]

/** A placeholder and its path. */
export interface Place {
  readonly path: Path
  readonly placeholder: Placeholder
}

/** An object that is not a valid placeholder, though it has the name of one. */
export interface PlaceFault {
  readonly path: Path
  /** The error text after `params.args[1]: `. */
  readonly text: string
}

export interface Places {
  readonly places: readonly Place[]
  readonly faults: readonly PlaceFault[]
}

/** Placeholders of one task. */
export const MAX_PLACEHOLDERS = 10_000

/** Maximum faults of one task. A dry run lists one less in total, so it knows whether there are more. */
export const MAX_PLACE_FAULTS = MAX_DRY_RUN_ERRORS + 1

const NAMES = ['$from', '$param', '$literal', '$item', '$index', '$graph', '$secret'] as const

/** The fields of each placeholder. */
const FIELDS: Readonly<Record<(typeof NAMES)[number], readonly string[]>> = {
  $from: REFERENCE_FIELDS,
  $param: ['$param'],
  $literal: ['$literal'],
  $secret: SECRET_TEXT_FIELDS,
  ...ELEMENT_FIELDS,
  $graph: GRAPH_PLACEHOLDER_FIELDS,
}

/** Whether `object` is meant to be a placeholder. */
export const hasPlaceholderName = (object: object): boolean => NAMES.some((name) => Object.hasOwn(object, name))

/** Whether `value` has a placeholder. `value` must be within the depth limit of a task. */
export function hasPlaceholder(value: unknown, levels = MAX_JSON_DEPTH): boolean {
  if (value === null || typeof value !== 'object' || levels === 0) return false
  if (Array.isArray(value)) return value.some((member) => hasPlaceholder(member, levels - 1))
  if (hasPlaceholderName(value)) return true
  for (const name in value) if (hasPlaceholder((value as JsonObject)[name], levels - 1)) return true
  return false
}

/** Bytes searched per step, which takes about 0.1 ms. */
const BYTES_PER_SEARCH = 1024 * 1024

/** The beginnings of a name with `$` in the text of JSON. */
const PLAIN_START = '"$'
const ESCAPED_START = '\\u0024'

/**
 * Whether the text of a graph may have a placeholder. Graphs without placeholders pay only for this search. That of a single
 * character is much faster: 0.5 µs for 600 characters, against 1.0.
 */
export const mentionsPlaceholder = (text: string): boolean =>
  (text.includes('$') && text.includes(PLAIN_START)) || (text.includes('\\') && text.includes(ESCAPED_START))

/** As `mentionsPlaceholder`, in steps, for a text in UTF-8. Whatever its other bytes are, those of the beginnings are ASCII. */
export function* mentionsPlaceholderInSteps(body: Uint8Array): Steps<boolean> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const overlap = ESCAPED_START.length - 1
  for (let at = 0; at < bytes.length; at += BYTES_PER_SEARCH) {
    if (mentionsPlaceholder(bytes.toString('latin1', at, at + BYTES_PER_SEARCH + overlap))) return true
    yield
  }
  return false
}

/** A container whose members are being visited. `keys` is undefined for an array. */
interface Open {
  readonly container: object
  readonly keys: readonly string[] | undefined
  readonly length: number
  next: number
}

/** The placeholders in `value`, in the order of its members, up to the limits. */
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
      else if (isFileReference(placeholder) && !isInputPath(path))
        faults.push({ path: [...path], text: MISPLACED_FILE })
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

/** Whether a placeholder stands for a file of another task. */
export const isFileReference = (placeholder: Placeholder): boolean =>
  placeholder.kind === 'reference' && placeholder.reference.file !== undefined

/** What a placeholder needs of the element of a child: itself, or the path of its file. */
export function elementOf(placeholder: Placeholder): ElementPlaceholder | undefined {
  if (placeholder.kind === 'item' || placeholder.kind === 'index') return placeholder
  const { file } = placeholder.kind === 'reference' ? placeholder.reference : {}
  return typeof file === 'object' ? file : undefined
}

/** Parses a placeholder. Returns the fault if it is invalid. */
export function placeholderIn(object: Readonly<JsonObject>): Placeholder | string {
  const name = NAMES.find((each) => Object.hasOwn(object, each))!
  const isFile = name === '$from' && Object.hasOwn(object, 'file')
  const known: readonly string[] = isFile ? FILE_REFERENCE_FIELDS : FIELDS[name]
  const other = Object.keys(object).find((key) => !known.includes(key))
  if (other !== undefined) {
    return `unknown field ${quoted(other)} beside ${quoted(name)}${didYouMean(nearestName(other, known))}`
  }
  if (name === '$secret') {
    const secret = secretTextIn(object)
    return typeof secret === 'string' ? secret : { kind: 'secret', secret }
  }
  const value = object[name]
  if (name === '$literal') return { kind: 'literal', value }
  if (name === '$item' || name === '$index') return elementPlaceholderIn(object)
  if (name === '$graph') return graphPlaceholderIn(object)
  if (name === '$param') {
    return typeof value === 'string' ? { kind: 'parameter', name: value } : '$param: expected the name of a parameter'
  }
  const reference = isFile ? fileReferenceIn(object) : referenceIn(object)
  return typeof reference === 'string' ? reference : { kind: 'reference', reference }
}

/** Replaces the placeholders in `value` by `values`. Copies only the containers on the paths. */
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

/** The value at `path`, which is in `value`. */
export const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce((found: unknown, name) => (found as JsonObject)[name], value)

/** Maximum characters of a path in an error text. */
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
