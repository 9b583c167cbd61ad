/**
 * Whether a JSON value has the form that a TypeBox schema describes, and which field is wrong if not. Pure.
 *
 * A schema says in `expected` what its values are, in the words of error texts: `depends_on: expected array of strings`.
 */
import type { Static, TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Errors } from '@sinclair/typebox/errors'
import { Check } from '@sinclair/typebox/value'
import { didYouMean, eachUnknownField, quoted } from '../../shared/request/unknown-names.ts'
import { isObject, type JsonObject, withoutNulls } from '../../shared/text/json.ts'

export interface SchemaFault {
  /** The wrong field, such as `action.input` or `args[1]`; empty for the whole value. */
  readonly path: string
  readonly expected: string
  /** The value has to be one of a few constants. */
  readonly isOneOf: boolean
  /** The value of the wrong field. */
  readonly found: unknown
  /** What is wrong: `expected integer`, `unknown field "initial" (did you mean "initial_ms"?)`. */
  readonly text: string
}

/**
 * Values that are checked against a schema as it is, before it is compiled. To compile that of tasks takes 13 ms of CPU time in a
 * new process, and 4 MB that it keeps; a check against the schema itself takes 0.1 ms.
 */
export const CHECKS_BEFORE_COMPILING = 16

export class SchemaCheck<T extends TSchema> {
  #checks = 0
  #compiled: TypeCheck<T> | undefined

  constructor(readonly schema: T) {}

  accepts(value: unknown): value is Static<T> {
    if (this.#compiled === undefined) {
      if (this.#checks++ < CHECKS_BEFORE_COMPILING) return Check(this.schema, value)
      this.#compiled = TypeCompiler.Compile(this.schema)
    }
    return this.#compiled.Check(value)
  }

  /** The first fault of a value that `accepts` refuses, at the innermost field whose schema has an `expected`. */
  faultOf(value: unknown): SchemaFault {
    const { path: pointer = '', message = '' } = Errors(this.schema, value).First() ?? {}
    let field: Field = { schema: this.schema, path: '', found: value }
    let named: Field | undefined
    for (const key of keysOf(pointer)) {
      field = memberOf(field, key)
      if (field.schema?.expected !== undefined) named = field
    }
    const { schema, path, found } = named ?? field
    const constants = constantsOf(schema)
    const worded = constants === undefined ? message.replace(/^Expected /, '') : `one of ${constants.join(', ')}`
    const expected = schema?.expected ?? worded
    const text = unknownFieldIn(schema, found) ?? `expected ${expected}`
    return { path, found, expected, isOneOf: constants !== undefined, text }
  }
}

/** The first field that `schema` does not know, with the one that it probably means. A placeholder is no misspelt field. */
function unknownFieldIn(schema: TSchema | undefined, found: unknown): string | undefined {
  const texts: string[] = []
  if (schema !== undefined && isObject(found))
    eachUnknownField(schema, found, ({ path, nearest }) => {
      if (!/(?:^|\.)\$/.test(path)) texts.push(`unknown field ${quoted(path)}${didYouMean(nearest)}`)
    })
  return texts[0]
}

/** A place in the value, and the schema for it; undefined where the schema leaves the values open. */
interface Field {
  readonly schema: TSchema | undefined
  readonly path: string
  readonly found: unknown
}

function memberOf({ schema, path, found }: Field, key: string): Field {
  const member = (found as Readonly<Record<string, unknown>> | null | undefined)?.[key]
  if (Array.isArray(found)) return { schema: schema?.items, path: `${path}[${key}]`, found: member }
  const [ofAnyName] = Object.values<TSchema>(schema?.patternProperties ?? {})
  const ofName: TSchema | undefined = schema?.properties?.[key]
  return { schema: ofName ?? ofAnyName, path: path === '' ? key : `${path}.${key}`, found: member }
}

/** The constants that the schema has a choice of; undefined if it is another schema. */
function constantsOf(schema: TSchema | undefined): readonly unknown[] | undefined {
  const choices: readonly TSchema[] = schema?.anyOf ?? []
  return choices.length > 0 && choices.every((choice) => 'const' in choice)
    ? choices.map((choice) => choice.const)
    : undefined
}

/** The keys of a JSON pointer. */
const keysOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))

/**
 * A copy of `value` without its null fields: a null means absent. Inner objects whose fields the schema names are copied,
 * too; what is below other fields is the caller's own.
 */
export function withoutNullFields(schema: TSchema, value: object): JsonObject {
  const fields = withoutNulls(value as JsonObject)
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const field = fields[name]
    if (property.properties !== undefined && isObject(field)) fields[name] = withoutNullFields(property, field)
  }
  return fields
}

const checks = new WeakMap<TSchema, SchemaCheck<TSchema>>()

/** The check of `schema`, the same one in every call, so that each schema is compiled at most once. */
export function checkOf<T extends TSchema>(schema: T): SchemaCheck<T> {
  const known = checks.get(schema) as SchemaCheck<T> | undefined
  if (known !== undefined) return known
  const made = new SchemaCheck(schema)
  checks.set(schema, made as unknown as SchemaCheck<TSchema>)
  return made
}
