/**
 * Parameters of a tool, checked against its TypeBox schema when the task runs.
 *
 * A property may carry `missing`, the whole text for when it is absent or empty (`url is required`), and `expected`,
 * which completes `parse http params: headers: expected object of strings`. A `null` means absent.
 */
import type { Static, TObject, TSchema } from '@sinclair/typebox'
import { isObject, withoutNulls } from '../../shared/text/json.ts'
import { checkOf, type SchemaCheck } from '../json/schema-check.ts'
import { invalidInput } from './executor.ts'

type Fields = Readonly<Record<string, unknown>>

/** Other objects are copied, without inherited members: those are no parameters. */
const isPlainObject = (value: unknown): boolean =>
  typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype

/** Stands for an absent input. */
const NOTHING: Fields = Object.freeze({})

export class ToolParams<T extends TObject> {
  readonly #check: SchemaCheck<T>
  /** Properties that may not be empty. */
  readonly #filled: readonly string[]

  constructor(
    readonly tool: string,
    readonly schema: T,
  ) {
    this.#check = checkOf(schema)
    const properties = Object.entries<TSchema>(schema.properties)
    this.#filled = properties.flatMap(([key, { missing }]) => (typeof missing === 'string' ? [key] : []))
  }

  /** `input`, checked. Throws `invalid_input`. */
  parse(input: unknown): Static<T> {
    // Most inputs have no nulls and need no copy, which would cost more than the check.
    const plain = input ?? NOTHING
    if (
      isPlainObject(plain) &&
      this.#check.accepts(plain) &&
      this.#filled.every((key) => (plain as Fields)[key] !== '')
    )
      return plain
    return this.#parseOther(input)
  }

  /** The input without its nulls. Throws `invalid_input`. */
  #parseOther(input: unknown): Static<T> {
    const fields = input ?? {}
    if (!isObject(fields)) throw invalidInput(`parse ${this.tool} params: expected object`)
    const given = withoutNulls(fields)
    for (const [key, property] of Object.entries(this.schema.properties)) {
      const isAbsent = given[key] === undefined || given[key] === ''
      if (isAbsent && typeof property.missing === 'string') throw invalidInput(property.missing)
    }
    if (this.#check.accepts(given)) return given
    const { path, expected } = this.#check.faultOf(given)
    throw invalidInput(`parse ${this.tool} params: ${path}: expected ${expected}`)
  }
}
