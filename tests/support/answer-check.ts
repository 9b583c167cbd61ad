/** Checks answers of a service against the schemas that describe them. A field that is not described is a fault. */
import { FormatRegistry, type TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'

FormatRegistry.Set('date-time', (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text))

const checks = new WeakMap<TSchema, TypeCheck<TSchema>>()

/** Throws with the first field of `answer` that is not as `schema` says. */
export function checkAnswer(schema: TSchema, answer: unknown): void {
  const check = checks.get(schema) ?? TypeCompiler.Compile(closed(schema))
  checks.set(schema, check)
  if (check.Check(answer)) return
  const { path, message, value } = check.Errors(answer).First()!
  throw new Error(`the answer is not as described: ${path || 'all of it'}: ${message}, got ${JSON.stringify(value)}`)
}

/** The answer, which is as `schema` says. Throws with its first fault. */
export function checkedAnswer<T>(schema: TSchema, answer: unknown): T {
  checkAnswer(schema, answer)
  return answer as T
}

/** The schema, with objects that have no other fields than those it names. */
function closed(schema: TSchema): TSchema {
  if (Array.isArray(schema)) return schema.map(closed) as unknown as TSchema
  if (schema === null || typeof schema !== 'object') return schema
  const copy = { ...schema } as Record<string, unknown>
  for (const keyword of ['items', 'anyOf']) if (keyword in schema) copy[keyword] = closed(schema[keyword])
  if (schema.properties === undefined) return copy as unknown as TSchema
  const properties = Object.entries<TSchema>(schema.properties).map(([name, property]) => [name, closed(property)])
  return {
    ...copy,
    properties: Object.fromEntries(properties),
    additionalProperties: schema.additionalProperties ?? false,
  } as unknown as TSchema
}
