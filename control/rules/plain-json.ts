/**
 * Copies the return values of executors as plain JSON. Pure.
 *
 * An executor may return any value: a BigInt, a getter that throws, a cycle, shared references that are huge as JSON.
 * The copy equals the result of `JSON.parse(JSON.stringify(value))`: `toJSON` is called, functions are left out. The
 * work is bounded, because every visit of a value counts. Code that reads the copy later, such as the journal, cannot
 * fail. Later changes of the original have no effect.
 */
import { messageOf } from '../../shared/contract/errors.ts'

export interface JsonLimits {
  /** Maximum levels of arrays and objects. */
  readonly levels: number
  /** Maximum values in all arrays and objects together. */
  readonly values: number
  /** Maximum characters of all names and texts together. */
  readonly characters: number
}

/** Thrown if the value cannot be kept as JSON. The message follows "the result cannot be kept: ". */
export class NotPlainJson extends Error {
  override name = 'NotPlainJson'
}

/** Copies of frozen objects of scalars. Tasks that share such a result share its copy, and a row in the journal. */
const copiesOfFrozen = new WeakMap<object, object>()

/** A plain copy of `value`; undefined for values that JSON omits, such as functions. Throws only `NotPlainJson`. */
export function plainJson(value: unknown, limits: JsonLimits): unknown {
  if (typeof value === 'boolean' || value === null || value === undefined) return value
  if (typeof value === 'object') {
    const known = copiesOfFrozen.get(value)
    if (known !== undefined) return known
  }
  const copying = new Copying(limits)
  try {
    const copy = copying.copy(value, '', 0)
    if (typeof value === 'object' && isFrozenAndFlat(value, copy)) copiesOfFrozen.set(value, Object.freeze(copy))
    return copy
  } catch (error) {
    if (error instanceof Refusal) throw new NotPlainJson(`${copying.place}${error.message}`)
    throw new NotPlainJson(`${copying.place}reading it throws: ${shortened(messageOf(error))}`)
  }
}

/** Thrown if a limit is exceeded, or if a value has no form in JSON. */
class Refusal extends Error {}

/** Maximum names in the path of a fault. Deeper names are cut. */
const MAX_NAMES_IN_PLACE = 6

const MAX_TEXT_IN_MESSAGE = 100

const shortened = (text: string): string =>
  text.length <= MAX_TEXT_IN_MESSAGE ? text : `${text.slice(0, MAX_TEXT_IN_MESSAGE)}...`

class Copying {
  readonly #limits: JsonLimits
  #values = 0
  #characters = 0
  /** The path of the current value. */
  readonly #path: (string | number)[] = []

  constructor(limits: JsonLimits) {
    this.#limits = limits
  }

  /** The prefix of an error, such as `usage.cpu: `. Empty for the whole value. */
  get place(): string {
    const names = this.#path.slice(0, MAX_NAMES_IN_PLACE).map((name) => shortened(String(name)))
    if (names.length === 0) return ''
    return `${names.join('.')}${this.#path.length > MAX_NAMES_IN_PLACE ? '...' : ''}: `
  }

  copy(given: unknown, name: string | number, depth: number): unknown {
    let value = given
    if (typeof value === 'object' && value !== null) {
      const { toJSON } = value as { toJSON?: unknown }
      if (typeof toJSON === 'function') value = toJSON.call(value, String(name))
    }
    switch (typeof value) {
      case 'string':
        this.#countCharacters(value)
        return value
      case 'number':
        return Number.isFinite(value) ? value + 0 : null // JSON has no -0
      case 'boolean':
        return value
      case 'bigint':
        throw new Refusal('a BigInt is not a JSON value')
      case 'object':
        return value === null ? null : this.#copyObject(value, depth)
      default:
        return undefined
    }
  }

  #copyObject(value: object, depth: number): unknown {
    const { levels } = this.#limits
    if (depth >= levels) throw new Refusal(`nested deeper than ${levels} levels`)
    if (Array.isArray(value)) return this.#copyArray(value, depth)
    if (value instanceof String || value instanceof Number || value instanceof Boolean || value instanceof BigInt)
      return this.copy(value.valueOf(), '', depth)
    // The list of the names alone may exceed the memory.
    if (ArrayBuffer.isView(value)) this.#checkCount(value.byteLength)
    const names = Object.keys(value)
    this.#countValues(names.length)
    const copy: Record<string, unknown> = {}
    for (const name of names) {
      this.#path[depth] = name
      this.#countCharacters(name)
      const member = this.copy((value as Record<string, unknown>)[name], name, depth + 1)
      if (member !== undefined) setMember(copy, name, member)
    }
    this.#path.length = depth
    return copy
  }

  #copyArray(value: readonly unknown[], depth: number): unknown[] {
    const { length } = value
    this.#countValues(length)
    const copy: unknown[] = []
    for (let i = 0; i < length; i++) {
      this.#path[depth] = i
      copy.push(this.copy(value[i], i, depth + 1) ?? null)
    }
    this.#path.length = depth
    return copy
  }

  #countValues(count: number): void {
    this.#values += count
    this.#checkCount(this.#values)
  }

  #checkCount(count: number): void {
    const { values } = this.#limits
    if (count <= values) return
    this.#path.length = 0
    throw new Refusal(`it has more than ${values} values`)
  }

  #countCharacters({ length }: string): void {
    this.#characters += length
    const { characters } = this.#limits
    if (this.#characters <= characters) return
    this.#path.length = 0
    throw new Refusal(`it has more than ${characters} characters`)
  }
}

/** Sets an own property, also for the name `__proto__`. */
export function setMember(copy: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') copy[name] = value
  else Object.defineProperty(copy, name, { value, writable: true, enumerable: true, configurable: true })
}

/** Whether `original` can never change, so that its copy can be shared. */
function isFrozenAndFlat(original: object | null, copy: unknown): copy is object {
  if (original === null || copy === null || typeof copy !== 'object' || !Object.isFrozen(original)) return false
  return Object.entries(Object.getOwnPropertyDescriptors(original)).every(
    ([, { value }]) => value !== undefined && typeof value !== 'object' && typeof value !== 'function',
  )
}
