/**
 * Parameters of a tool, checked against its TypeBox schema when the task runs.
 *
 * A property may carry `missing`, the whole text for when it is absent or empty (`url is required`), and `expected`,
 * which completes `parse http params: headers: expected object of strings`. A `null` means absent.
 */
import type { Static, TObject, TSchema } from '@sinclair/typebox'
import { isObject, withoutNulls } from '../../shared/json.ts'
import { checkOf, type SchemaCheck } from '../json/schema-check.ts'
import { invalidInput } from './executor.ts'

type Fields = Readonly<Record<string, unknown>>

/** What is inherited is no parameter. */
const isPlainObject = (value: unknown): boolean =>
  typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype

/** What an absent input means. */
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

  /** `input` as the schema's type, or throws `invalid_input`. */
  parse(input: unknown): Static<T> {
    // Most inputs are right as they are: a copy of each would cost a submission more than the check.
    const plain = input ?? NOTHING
    if (
      isPlainObject(plain) &&
      this.#check.accepts(plain) &&
      this.#filled.every((key) => (plain as Fields)[key] !== '')
    )
      return plain
    return this.#parseOther(input)
  }

  /** The input without its nulls, or why it is wrong. */
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
