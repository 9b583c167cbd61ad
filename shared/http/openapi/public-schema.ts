/**
 * Makes public JSON Schemas of the schemas that we validate with: without the keywords for our error texts, and in the forms
 * that model providers accept (`enum`, `additionalProperties`; no `null`, which only means absent). Pure.
 */
import type { TSchema } from '@sinclair/typebox'

/**
 * Keywords that complete our error texts, and rules that a later check has, with a text of its own: the fields that an object
 * `needs`, and texts that are `notEmpty`. `brief` is the description in the list of the MCP tools.
 */
const PRIVATE = new Set(['missing', 'expected', 'value', 'needs', 'notEmpty', 'brief'])

/** Keywords whose value is data, not a schema. */
const DATA = new Set(['default', 'examples', 'enum', 'const', 'required'])

export type Json = Readonly<Record<string, unknown>>

/** Makes the public form of a schema at any depth, or something in its place. `form` makes the plain one. */
type Replace = (schema: Json, form: (schema: Json) => Json) => Json

/**
 * A choice between values of several types is a description only, because some model providers refuse `anyOf`. The choice
 * is a schema that our error texts describe: `expected`.
 */
const forModels: Replace = (schema, form) => {
  const { anyOf, description, expected } = schema
  const plain = form(schema)
  return Array.isArray(anyOf) && 'anyOf' in plain && expected !== undefined
    ? { description: description ?? expected }
    : plain
}

/** For readers that know all of JSON Schema: editors, and readers of the OpenAPI document. */
export const inFull: Replace = (schema, form) => form(schema)

/** `replace` is asked for the schema and for every schema inside it. Default: a form for models. */
export function publicSchema(schema: TSchema, replace: Replace = forModels): Json {
  const formOf = (inner: Json): Json => replace(inner, (plain) => publicForm(plain, formOf))
  return formOf(schema)
}

type FormOf = (schema: Json) => Json

function publicForm(schema: Json, formOf: FormOf): Json {
  const { type, description, anyOf, patternProperties, ...rest } = schema
  if (Array.isArray(rest.items)) return tuple(schema, rest.items, formOf)
  return {
    ...(type !== undefined && { type }),
    ...(description !== undefined && { description }),
    ...Object.fromEntries(
      Object.entries(rest)
        .filter(([keyword]) => !PRIVATE.has(keyword))
        .map(([keyword, value]) => [keyword, publicValue(keyword, value, formOf)]),
    ),
    ...(patternProperties !== undefined && anyName(patternProperties as Record<string, Json>, formOf)),
    ...(anyOf !== undefined && alternatives(anyOf as Json[], formOf)),
  }
}

/** A list of a fixed length. TypeBox writes it as draft 7 of JSON Schema does. */
function tuple(schema: Json, items: readonly Json[], formOf: FormOf): Json {
  const { items: _, additionalItems: __, ...rest } = schema
  return { ...publicForm(rest, formOf), prefixItems: items.map(formOf), items: false }
}

function publicValue(keyword: string, value: unknown, formOf: FormOf): unknown {
  if (DATA.has(keyword) || value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((member) => formOf(member))
  if (keyword !== 'properties') return formOf(value as Json)
  return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, formOf(property)]))
}

/** A map from any name to one schema. TypeBox writes it as a pattern that every name matches. */
function anyName(patternProperties: Readonly<Record<string, Json>>, formOf: FormOf): Json {
  const [schema, ...others] = Object.values(patternProperties)
  return schema !== undefined && others.length === 0 ? { additionalProperties: formOf(schema) } : {}
}

function alternatives(anyOf: readonly Json[], formOf: FormOf): Json {
  const given = anyOf.filter(({ type }) => type !== 'null').map(formOf)
  if (given.length === 1) return given[0]!
  const texts = given.map((schema) => schema.const)
  return texts.every((text) => typeof text === 'string') ? { type: 'string', enum: texts } : { anyOf: given }
}
