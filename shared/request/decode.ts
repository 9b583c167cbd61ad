/**
 * Checks the JSON types and the names of the fields in the body of POST /api/v1/tasks. Pure.
 *
 * One walk along the schema removes nulls, which mean absent at every depth, and refuses unknown fields and wrong JSON types;
 * `validate.ts` checks the values. Texts: `invalid JSON: limits.pids_max: expected whole number above 0, got string`,
 * `unknown field sandbox.profil (did you mean sandbox.profile?)`. A compiled TypeBox check could not replace the walk: it
 * tells a wrong type from a forbidden value only by the words of its errors.
 */
import type { TSchema } from '@sinclair/typebox'
import { TaskStatusResponse } from '../contract/runtime.ts'
import { SubmitTaskRequest } from '../contract/runtime-request.ts'
import { isObject, jsonTypeOf } from '../text/json.ts'
import { JsonSyntaxError, parseJson } from '../text/json-bytes.ts'
import { requestFault } from './fault.ts'
import { shortened } from './text.ts'
import { eachUnknownField, objectForm, quoted, type UnknownFields, type UnknownName } from './unknown-names.ts'

const invalidJson = (detail: string) => requestFault(`invalid JSON: ${detail}`)

/** The request in `body`. Throws `RequestFault`. `unknownFields` tells whether unknown fields are refused or dropped. */
export function decodeRequest(body: Uint8Array, unknownFields: UnknownFields): SubmitTaskRequest {
  if (body.length === 0) throw invalidJson('the body is empty')
  try {
    return decodeValue(parseJson(body), unknownFields)
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw invalidJson(error.message)
    throw error
  }
}

/** The same for a parsed body. */
export function decodeValue(value: unknown, unknownFields: UnknownFields): SubmitTaskRequest {
  if (!isObject(value)) throw invalidJson(`expected object with an execution, got ${jsonTypeOf(value)}`)
  const request = decoded(SubmitTaskRequest, value, '') as SubmitTaskRequest
  if (unknownFields === 'refuse') refuseUnknown(SubmitTaskRequest, withoutStatusFields(value))
  return request
}

/** Fields of a status that a request does not have. They are ignored, so that a status can be submitted as a request. */
const STATUS_FIELDS: readonly string[] = Object.keys(TaskStatusResponse.properties).filter(
  (name) => !Object.hasOwn(SubmitTaskRequest.properties, name),
)

function withoutStatusFields(value: Members): Members {
  if (!STATUS_FIELDS.some((name) => Object.hasOwn(value, name))) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => !STATUS_FIELDS.includes(name)))
}

function refuseUnknown(schema: TSchema, value: Members, at?: string): void {
  const refuse = ({ path, nearest }: UnknownName) => {
    const hint = nearest === undefined ? '' : ` (did you mean ${nearest}?)`
    throw requestFault(`unknown field ${/^[\w.-]{1,128}$/.test(path) ? path : quoted(path)}${hint}`)
  }
  eachUnknownField(schema, value, refuse, at)
}

/** Recursion ends with the schema, however deep the value is. */
function decoded(given: TSchema, value: unknown, path: string): unknown {
  const schema = isObject(value) ? objectForm(given) : given
  if (!hasType(schema, value)) throw invalidJson(`${path}: expected ${schema.expected}, got ${jsonTypeOf(value)}`)
  if (schema.properties !== undefined) return decodedObject(schema, value as Members, path)
  if (schema.patternProperties !== undefined) {
    const [ofAnyName] = Object.values<TSchema>(schema.patternProperties)
    for (const [key, member] of Object.entries(value as Members)) {
      if (ofAnyName!.properties !== undefined) checkForm(ofAnyName!, ofAnyName!, member, `${path}.${shortened(key)}`)
      else if (typeof member !== 'string') checkMember(ofAnyName!, member, `${path}.${shortened(key)}`)
    }
  }
  if (schema.items !== undefined) return decodedItems(schema.items as TSchema, value as readonly unknown[], path)
  return value
}

/** Texts, or what else the schema allows in their place. */
function decodedItems(schema: TSchema, items: readonly unknown[], path: string): readonly unknown[] {
  if (schema.anyOf !== undefined) return items.map((item, i) => decoded(schema, item, `${path}[${i}]`))
  for (let i = 0; i < items.length; i++) if (typeof items[i] !== 'string') throw noText(items[i], `${path}[${i}]`)
  return items
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

/** A member of a map that is no text: the map may allow an object of texts in its place. */
function checkMember(schema: TSchema, member: unknown, path: string): void {
  const form = (schema.anyOf as TSchema[] | undefined)?.find(({ properties }) => properties !== undefined)
  if (form === undefined) throw noText(member, path)
  checkForm(form, schema, member, path)
}

/** A member of a map that has to be an object as `form` describes it. */
function checkForm(form: TSchema, { expected }: TSchema, member: unknown, path: string): void {
  if (!isObject(member)) throw invalidJson(`${path}: expected ${expected}, got ${jsonTypeOf(member)}`)
  refuseUnknown(form, member, path)
  const required: readonly string[] = form.required ?? []
  for (const name in form.properties) {
    const value = member[name] ?? null
    if (value === null && !required.includes(name)) continue
    const schema: TSchema = form.properties[name]
    if (hasType(schema, value)) continue
    throw invalidJson(`${path}.${name}: expected ${schema.expected ?? 'string'}, got ${jsonTypeOf(value)}`)
  }
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
