/**
 * Makes public JSON Schemas of the schemas that we validate with: without the keywords for our error texts, and in the forms
 * that model providers accept (`enum`, `additionalProperties`; no `null`, which only means absent). Pure.
 */
import type { TSchema } from '@sinclair/typebox'

/** Keywords that complete our error texts. */
const PRIVATE = new Set(['missing', 'expected'])

/** Keywords whose value is data, not a schema. */
const DATA = new Set(['default', 'examples', 'enum', 'const', 'required'])

type Json = Readonly<Record<string, unknown>>

export function publicSchema(schema: TSchema): object {
  return publicForm(schema)
}

function publicForm(schema: Json): Json {
  const { type, description, anyOf, patternProperties, ...rest } = schema
  return {
    ...(type !== undefined && { type }),
    ...(description !== undefined && { description }),
    ...Object.fromEntries(
      Object.entries(rest)
        .filter(([keyword]) => !PRIVATE.has(keyword))
        .map(([keyword, value]) => [keyword, publicValue(keyword, value)]),
    ),
    ...(patternProperties !== undefined && anyName(patternProperties as Record<string, Json>)),
    ...(anyOf !== undefined && alternatives(anyOf as Json[])),
  }
}

function publicValue(keyword: string, value: unknown): unknown {
  if (DATA.has(keyword) || value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((member) => publicForm(member))
  if (keyword !== 'properties') return publicForm(value as Json)
  return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, publicForm(property)]))
}

/** A map from any name to one schema. TypeBox writes it as a pattern that every name matches. */
function anyName(patternProperties: Readonly<Record<string, Json>>): Json {
  const [schema, ...others] = Object.values(patternProperties)
  return schema !== undefined && others.length === 0 ? { additionalProperties: publicForm(schema) } : {}
}

function alternatives(anyOf: readonly Json[]): Json {
  const given = anyOf.filter(({ type }) => type !== 'null').map(publicForm)
  if (given.length === 1) return given[0]!
  const texts = given.map((schema) => schema.const)
  return texts.every((text) => typeof text === 'string') ? { type: 'string', enum: texts } : { anyOf: given }
}
