/** The body of POST /adapters/actions and /adapters/translate: JSON of the right shape that names a kind. Pure. */
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { AgentActionRequest } from '../../shared/contract/adapter-v1.ts'
import { badRequest } from '../../shared/errors.ts'
import { isObject, jsonTypeOf } from '../../shared/json.ts'
import { nearestName, type Synonyms } from '../../shared/nearest-name.ts'
import type { Steps } from '../../shared/steps.ts'
import { didYouMean, FREE_FIELDS, firstUnknown, quoted, type UnknownFields } from '../../shared/unknown-names.ts'
import { decodeJson, invalidJson } from '../graph/json-body.ts'
import type { LongArrays } from '../graph/large-json.ts'

/** 400 for an action that is JSON of the right shape and still cannot be one. */
export const invalidAction = (detail: string) => badRequest(`invalid adapter action: ${detail}`)

type Action = NonNullable<AgentActionRequest['action']>

/** A request in which nothing is null and no field has the wrong type. What was not given is absent. */
export type DecodedRequest = Omit<AgentActionRequest, 'action'> & { readonly action: Action & { kind: string } }

/** Where a request may hold a graph, which may be large. */
const GRAPHS: LongArrays = { action: { input: { tasks: true, task_graph: { tasks: true } } } }

let compiled: TypeCheck<typeof AgentActionRequest> | undefined

/** The request, or throws 400. A graph inside of it is not looked at yet. */
export function* decodeRequest(body: Uint8Array, unknownFields: UnknownFields): Steps<DecodedRequest> {
  const given = (yield* decodeJson(body, GRAPHS)) ?? {}
  if (!isObject(given)) throw invalidJson(`expected object with an action, got ${jsonTypeOf(given)}`)
  const request = withoutNulls(given)
  if (isObject(request.action)) request.action = withoutNulls(request.action)
  compiled ??= TypeCompiler.Compile(AgentActionRequest)
  if (!compiled.Check(request)) throw invalidJson(shapeFault(compiled, request))
  const { action } = request
  if (action?.kind === undefined || action.kind === '') throw invalidAction('action.kind is required')
  if (unknownFields === 'refuse') refuseUnknown(request)
  return { ...request, action: { ...action, kind: action.kind } }
}

/** What other interfaces for tools call the fields of an action. */
const ACTION_SYNONYMS: Synonyms = {
  ...{ arguments: 'input', args: 'input', params: 'input', parameters: 'input', tool: 'tool_name', type: 'kind' },
  ...{ dependencies: 'depends_on', retries: 'retry', max_retries: 'retry', id: 'action_id' },
}

const ACTION_FIELDS = Object.keys(AgentActionRequest.properties.action.properties)
const REQUEST_FIELDS = Object.keys(AgentActionRequest.properties)
const KNOWN_ACTION_FIELDS = new Set([...ACTION_FIELDS, ...FREE_FIELDS])
const KNOWN_REQUEST_FIELDS = new Set([...REQUEST_FIELDS, ...FREE_FIELDS])

function refuseUnknown(request: AgentActionRequest): void {
  const name = firstUnknown(request, KNOWN_REQUEST_FIELDS)
  if (name !== undefined) throw unknownActionField(name, nearestName(name, REQUEST_FIELDS, ACTION_SYNONYMS))
  const inner = firstUnknown(request.action ?? {}, KNOWN_ACTION_FIELDS)
  if (inner === undefined) return
  const nearest = nearestName(inner, ACTION_FIELDS, ACTION_SYNONYMS)
  throw unknownActionField(`action.${inner}`, nearest && `action.${nearest}`)
}

/** 400 for the unknown field `path` of an action. */
export const unknownActionField = (path: string, nearest: string | undefined) =>
  invalidAction(`unknown field ${quoted(path)}${didYouMean(nearest)}`)

/** The members of `given` that are there. A name like `__proto__` is one like any other. */
export const withoutNulls = (given: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))

function shapeFault(check: TypeCheck<typeof AgentActionRequest>, request: Record<string, unknown>): string {
  const [field = '', inner] = (check.Errors(request).First()?.path ?? '').split('/').slice(1)
  const { properties } = AgentActionRequest
  if (field !== 'action') return `${field}: expected ${properties[field as keyof typeof properties]?.expected}`
  if (inner === undefined) return `action: expected object, got ${jsonTypeOf(request.action)}`
  const { properties: fields } = properties.action
  return `action.${inner}: expected ${fields[inner as keyof typeof fields]?.expected}`
}
