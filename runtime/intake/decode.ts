/**
 * The body of POST /api/v1/tasks: JSON of the right shape. Pure.
 *
 * One walk along the schema gives a request in which nothing is null, nothing is unknown and no field has the wrong JSON
 * type; what the values may be is `validate.ts`. Wrong types read `invalid JSON: limits.pids_max: expected whole number
 * above 0, got string`. The walk is our own because a compiled check tells wrong types and forbidden values apart only by
 * the words of its errors, and because a null means absent at every depth.
 */
import type { TSchema } from '@sinclair/typebox'
import { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { JsonSyntaxError, parseJson } from '../../shared/json-slices.ts'
import { invalidInput } from '../refusal.ts'
import { shortened } from './text.ts'

const invalidJson = (detail: string) => invalidInput(`invalid JSON: ${detail}`)

/** The request that a body holds, or throws 400. */
export function decodeRequest(body: Uint8Array): SubmitTaskRequest {
  if (body.length === 0) throw invalidJson('the body is empty')
  try {
    return decodeValue(parseJson(body))
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw invalidJson(error.message)
    throw error
  }
}

/** The same for a body that was parsed already. */
export function decodeValue(value: unknown): SubmitTaskRequest {
  if (!isObject(value)) throw invalidJson(`expected object with an execution, got ${nameOf(value)}`)
  return decoded(SubmitTaskRequest, value, '') as SubmitTaskRequest
}

/** As deep as the schema, whatever the depth of the value. */
function decoded(schema: TSchema, value: unknown, path: string): unknown {
  if (!hasType(schema, value)) throw invalidJson(`${path}: expected ${schema.expected}, got ${nameOf(value)}`)
  if (schema.properties !== undefined) return decodedObject(schema, value as Members, path)
  if (schema.patternProperties !== undefined) {
    for (const [key, member] of Object.entries(value as Members)) expectText(member, `${path}.${shortened(key)}`)
  }
  if (schema.items !== undefined) {
    for (const [i, item] of (value as unknown[]).entries()) expectText(item, `${path}[${i}]`)
  }
  return value
}

type Members = Readonly<Record<string, unknown>>

function decodedObject({ properties, additionalProperties }: TSchema, value: Members, path: string): Members {
  if (additionalProperties === false) {
    const unknown = Object.keys(value).find((key) => !Object.hasOwn(properties, key))
    if (unknown !== undefined) {
      throw invalidInput(`${path}.${shortened(unknown)} is unknown (known: ${Object.keys(properties).join(', ')})`)
    }
  }
  const members: Record<string, unknown> = {}
  for (const key in properties) {
    const member = value[key] ?? null
    if (member !== null) members[key] = decoded(properties[key], member, path === '' ? key : `${path}.${key}`)
  }
  return members
}

function expectText(value: unknown, path: string): void {
  if (typeof value !== 'string') throw invalidJson(`${path}: expected string, got ${nameOf(value)}`)
}

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

const isObject = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** The JSON type of a value. */
const nameOf = (value: unknown): string => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value)
