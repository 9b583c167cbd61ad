/**
 * The tools as `tools/list` shows them. Models read the whole list with every conversation, so it is short: a schema names
 * the fields, their types and their purpose. Limits and the fields inside of rare ones are left to the check of a call, which
 * names the field and what is expected. Pure.
 */
import { type Json, publicSchema } from '../../shared/http/openapi/public-schema.ts'
import type { Tool } from './tool.ts'

/** Keywords that stay. All others only refuse values, and the check of a call does that in words. */
const KEPT = new Set([
  'type',
  'description',
  'enum',
  'const',
  'properties',
  'required',
  'items',
  'additionalProperties',
])

/** `brief` of a schema describes it with all that is inside. */
function listedForm(schema: Json, form: (schema: Json) => Json): Json {
  const { brief } = schema
  const shown = brief === undefined ? form(schema) : inBrief(form(schema), brief)
  const entries = Object.entries(shown).filter(([keyword, value]) => KEPT.has(keyword) && !isEmpty(value))
  return Object.fromEntries(entries)
}

function inBrief({ properties, required, additionalProperties, items, ...all }: Json, brief: unknown): Json {
  const { type } = (items ?? {}) as Json
  // Some model providers refuse a list that does not say what it is of.
  return { ...all, description: brief, ...(type !== undefined && { items: { type } }) }
}

/** `{}` and `true` allow anything, as their absence does. */
const isEmpty = (value: unknown): boolean =>
  value === true || (value !== null && typeof value === 'object' && Object.keys(value).length === 0)

/** The fields of an answer that have a type. The answers explain themselves. */
function outlineOf(answer: Tool['answer']): Json {
  const { properties = {}, required = [] } = publicSchema(answer) as {
    properties?: Record<string, Json>
    required?: []
  }
  const types = Object.entries(properties).flatMap(([name, { type }]) => (type === undefined ? [] : [[name, { type }]]))
  return { type: 'object', properties: Object.fromEntries(types), ...(required.length > 0 && { required }) }
}

export const listedTool = ({ name, title, description, input, answer, isReadOnly, isDestructive }: Tool) => ({
  name,
  title,
  description,
  inputSchema: publicSchema(input, listedForm) as { type: 'object' },
  outputSchema: outlineOf(answer) as { type: 'object' },
  // What a hint leaves out is what the protocol takes for granted.
  annotations: isReadOnly
    ? { readOnlyHint: true, openWorldHint: false }
    : { readOnlyHint: false, ...(isDestructive !== true && { destructiveHint: false }) },
})
