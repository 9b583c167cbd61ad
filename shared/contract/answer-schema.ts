/** The forms that the fields of answers have. They document; nobody checks our own answers with them but the tests. */
import { type TBoolean, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'
import { NAMESPACES, type Namespace } from './runtime-request.ts'

export const text = (description: string) => Type.String({ description })
export const texts = (description: string) => Type.Array(Type.String(), { description })
export const textMap = (description: string) => Type.Record(Type.String(), Type.String(), { description })
export const flag = (description: string) => Type.Boolean({ description })

/** A whole number, 0 or more. */
export const count = (description: string) => Type.Integer({ minimum: 0, description })

/** RFC 3339 in UTC, with milliseconds. */
export const time = (description: string) => Type.String({ format: 'date-time', description })

export const oneOf = <const V extends readonly string[]>(values: V, description: string) => {
  const literals = values.map((value) => Type.Literal(value))
  return Type.Union(literals, { description }) as TSchema as TUnsafe<V[number]> // a list has no type for its union
}

/** A field that is left out where there is nothing to say. */
export const maybe = <T extends TSchema>(schema: T) => Type.Optional(schema)

/** A yes or no for each namespace. */
export const namespaceFlags = (describe: (name: Namespace) => string) => {
  const flags = NAMESPACES.map((name) => [name, flag(describe(name))])
  return Type.Object(Object.fromEntries(flags) as Record<Namespace, TBoolean>)
}
