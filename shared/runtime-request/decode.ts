/**
 * The body of POST /api/v1/tasks: JSON of the right shape. Pure.
 *
 * One walk along the schema gives a request in which nothing is null, nothing is unknown and no field has the wrong JSON
 * type; what the values may be is `validate.ts`. Wrong types read `invalid JSON: limits.pids_max: expected whole number
 * above 0, got string`, unknown fields `unknown field sandbox.profil (did you mean sandbox.profile?)`. The walk is our own
 * because a compiled check tells wrong types and forbidden values apart only by the words of its errors, and because a
 * null means absent at every depth.
 */
import type { TSchema } from '@sinclair/typebox'
import { TaskStatusResponse } from '../contract/runtime.ts'
import { SubmitTaskRequest } from '../contract/runtime-request.ts'
import { isObject, jsonTypeOf } from '../json.ts'
import { JsonSyntaxError, parseJson } from '../json-bytes.ts'
import { quoted, type UnknownFields, unknownField } from '../unknown-names.ts'
import { requestFault } from './fault.ts'
import { shortened } from './text.ts'

const invalidJson = (detail: string) => requestFault(`invalid JSON: ${detail}`)

/** The request that a body holds, or throws `RequestFault`. `unknownFields` says whether unknown fields are refused or left out. */
export function decodeRequest(body: Uint8Array, unknownFields: UnknownFields): SubmitTaskRequest {
  if (body.length === 0) throw invalidJson('the body is empty')
  try {
    return decodeValue(parseJson(body), unknownFields)
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw invalidJson(error.message)
    throw error
  }
}

/** The same for a body that was parsed already. */
export function decodeValue(value: unknown, unknownFields: UnknownFields): SubmitTaskRequest {
  if (!isObject(value)) throw invalidJson(`expected object with an execution, got ${jsonTypeOf(value)}`)
  const request = decoded(SubmitTaskRequest, value, '') as SubmitTaskRequest
  if (unknownFields === 'refuse') refuseUnknown(SubmitTaskRequest, withoutStatusFields(value))
  return request
}

/** What a status has beside the fields of a request. Of a status that is sent back as a request it is ignored. */
const STATUS_FIELDS: readonly string[] = Object.keys(TaskStatusResponse.properties).filter(
  (name) => !Object.hasOwn(SubmitTaskRequest.properties, name),
)

function withoutStatusFields(value: Members): Members {
  if (!STATUS_FIELDS.some((name) => Object.hasOwn(value, name))) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => !STATUS_FIELDS.includes(name)))
}

function refuseUnknown(schema: TSchema, value: Members, at?: string): void {
  const found = unknownField(schema, value, at)
  if (found === undefined) return
  const { path, nearest } = found
  const hint = nearest === undefined ? '' : ` (did you mean ${nearest}?)`
  throw requestFault(`unknown field ${/^[\w.-]{1,128}$/.test(path) ? path : quoted(path)}${hint}`)
}

/** As deep as the schema, whatever the depth of the value. */
function decoded(schema: TSchema, value: unknown, path: string): unknown {
  if (!hasType(schema, value)) throw invalidJson(`${path}: expected ${schema.expected}, got ${jsonTypeOf(value)}`)
  if (schema.properties !== undefined) return decodedObject(schema, value as Members, path)
  if (schema.patternProperties !== undefined) {
    for (const [key, member] of Object.entries(value as Members)) {
      if (typeof member !== 'string') throw noText(member, `${path}.${shortened(key)}`)
    }
  }
  if (schema.items !== undefined) {
    const items = value as readonly unknown[]
    for (let i = 0; i < items.length; i++) if (typeof items[i] !== 'string') throw noText(items[i], `${path}[${i}]`)
  }
  return value
}

type Members = Readonly<Record<string, unknown>>

function decodedObject(schema: TSchema, value: Members, path: string): Members {
  const { properties, additionalProperties } = schema
  if (additionalProperties === false) refuseUnknown(schema, value, path)
  const members: Record<string, unknown> = {}
  for (const key in properties) {
    const member = value[key] ?? null
    if (member !== null) members[key] = decoded(properties[key], member, path === '' ? key : `${path}.${key}`)
  }
  return members
}

const noText = (value: unknown, path: string) => invalidJson(`${path}: expected string, got ${jsonTypeOf(value)}`)

function hasType(schema: TSchema, value: unknown): boolean {
  switch (schema.type) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return typeof value === 'number'
    default: // a string, a boolean, or one of several strings
      return typeof value === (schema.type ?? 'string')
  }
}
