/** Schemas for fields of answers. They document the answers; only tests check with them. */
import type { TBoolean, TSchema, TUnsafe } from '@sinclair/typebox'
import { NAMESPACES, type Namespace } from './runtime-request.ts'
import { Type } from './schema-builder.ts'
import { stringMap } from './string-map.ts'

/** The type of an answer, which nobody changes. */
export type Immutable<T> = T extends readonly (infer E)[]
  ? readonly Immutable<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Immutable<T[K]> }
    : T

export const text = (description: string) => Type.String({ description })
export const texts = (description: string) => Type.Array(Type.String(), { description })
export const textMap = (description: string) => stringMap({ description })
export const flag = (description: string) => Type.Boolean({ description })

/** A whole number, 0 or more. */
export const count = (description: string) => Type.Integer({ minimum: 0, description })

/** RFC 3339 in UTC, with milliseconds. */
export const time = (description: string) => Type.String({ format: 'date-time', description })

export const oneOf = <const V extends readonly string[]>(values: V, description: string) => {
  const literals = values.map((value) => Type.Literal(value))
  return Type.Union(literals, { description }) as TSchema as TUnsafe<V[number]> // TypeScript cannot infer the union of a mapped array
}

/** A field that may be absent. */
export const maybe = <T extends TSchema>(schema: T) => Type.Optional(schema)

/** A boolean for each namespace. */
export const namespaceFlags = (describe: (name: Namespace) => string) => {
  const flags = NAMESPACES.map((name) => [name, flag(describe(name))])
  return Type.Object(Object.fromEntries(flags) as Record<Namespace, TBoolean>)
}
