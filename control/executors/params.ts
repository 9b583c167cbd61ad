/**
 * Parameters of a tool, checked against its TypeBox schema when the task runs.
 *
 * A property may carry `missing`, the whole text for when it is absent or empty (`url is required`), and `expected`,
 * which completes `parse http params: headers: expected object of strings`. A `null` means absent.
 */
import type { Static, TObject, TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { invalidInput } from './executor.ts'

type Fields = Readonly<Record<string, unknown>>

/** What is inherited is no parameter. */
const isPlainObject = (value: unknown): boolean =>
  typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype

/** What an absent input means. */
const NOTHING: Fields = Object.freeze({})

export class ToolParams<T extends TObject> {
  #check: TypeCheck<T> | undefined
  /** Properties that may not be empty. */
  readonly #filled: readonly string[]

  constructor(
    readonly tool: string,
    readonly schema: T,
  ) {
    const properties = Object.entries<TSchema>(schema.properties)
    this.#filled = properties.flatMap(([key, { missing }]) => (typeof missing === 'string' ? [key] : []))
  }

  /** `input` as the schema's type, or throws `invalid_input`. */
  parse(input: unknown): Static<T> {
    this.#check ??= TypeCompiler.Compile(this.schema)
    // Most inputs are right as they are: a copy of each would cost a submission more than the check.
    const plain = input ?? NOTHING
    if (isPlainObject(plain) && this.#check.Check(plain) && this.#filled.every((key) => (plain as Fields)[key] !== ''))
      return plain
    return this.#parseOther(input)
  }

  /** The input without its nulls, or why it is wrong. */
  #parseOther(input: unknown): Static<T> {
    if (input !== undefined && input !== null && (typeof input !== 'object' || Array.isArray(input))) {
      throw invalidInput(`parse ${this.tool} params: expected object`)
    }
    const given: Record<string, unknown> = Object.create(null) // an own __proto__ is a name like any other
    for (const [key, value] of Object.entries(input ?? {})) if (value !== null) given[key] = value
    for (const [key, property] of Object.entries(this.schema.properties)) {
      const isAbsent = given[key] === undefined || given[key] === ''
      if (isAbsent && typeof property.missing === 'string') throw invalidInput(property.missing)
    }
    const check = this.#check!
    if (check.Check(given)) return given
    const fault = check.Errors(given).First()
    const key = fault?.path.split('/')[1] ?? ''
    const expected = this.schema.properties[key]?.expected ?? fault?.message ?? 'another value'
    throw invalidInput(`parse ${this.tool} params: ${key}: expected ${expected}`)
  }
}
