/**
 * Parameters of a tool, checked against its TypeBox schema when the task runs.
 *
 * A property may carry `missing`, the whole text for when it is absent or empty (`url is required`), and `expected`,
 * which completes `parse http params: headers: expected object of strings`. A `null` means absent.
 */
import type { Static, TObject } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { invalidInput } from './executor.ts'

export class ToolParams<T extends TObject> {
  #check: TypeCheck<T> | undefined

  constructor(
    readonly tool: string,
    readonly schema: T,
  ) {}

  /** `input` as the schema's type, or throws `invalid_input`. */
  parse(input: unknown): Static<T> {
    if (input !== undefined && input !== null && (typeof input !== 'object' || Array.isArray(input))) {
      throw invalidInput(`parse ${this.tool} params: expected object`)
    }
    const given: Record<string, unknown> = Object.create(null) // an own __proto__ is a name like any other
    for (const [key, value] of Object.entries(input ?? {})) if (value !== null) given[key] = value
    for (const [key, property] of Object.entries(this.schema.properties)) {
      const isAbsent = given[key] === undefined || given[key] === ''
      if (isAbsent && typeof property.missing === 'string') throw invalidInput(property.missing)
    }
    this.#check ??= TypeCompiler.Compile(this.schema)
    if (this.#check.Check(given)) return given
    const fault = this.#check.Errors(given).First()
    const key = fault?.path.split('/')[1] ?? ''
    const expected = this.schema.properties[key]?.expected ?? fault?.message ?? 'another value'
    throw invalidInput(`parse ${this.tool} params: ${key}: expected ${expected}`)
  }
}
