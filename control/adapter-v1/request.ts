/** A request of POST /adapters/actions and /adapters/translate: JSON of the right shape that names a kind. Pure. */
import { AgentActionRequest } from '../../shared/contract/adapter-v1.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import type { Steps } from '../../shared/process/steps.ts'
import {
  didYouMean,
  FREE_FIELDS,
  firstUnknown,
  quoted,
  type UnknownFields,
} from '../../shared/request/unknown-names.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import type { LongArrays } from '../json/large-json.ts'
import { checkOf } from '../json/schema-check.ts'

/** 400 for an action that has the right shape and is still invalid. */
export const invalidAction = (detail: string) => badRequest(`invalid adapter action: ${detail}`)

type Action = NonNullable<AgentActionRequest['action']>

/** A request without nulls and invalid fields. Fields that were not given are absent. */
export type DecodedRequest = Omit<AgentActionRequest, 'action'> & { readonly action: Action & { kind: string } }

/** The paths of graphs in a request. Graphs may be large. */
const GRAPHS: LongArrays = { action: { input: { tasks: true, task_graph: { tasks: true } } } }

const requestCheck = checkOf(AgentActionRequest)

/** The decoded request. Throws 400. Does not check a graph in it. */
export function* decodeRequest(body: Uint8Array, unknownFields: UnknownFields): Steps<DecodedRequest> {
  return checkRequest((yield* decodeJson(body, GRAPHS)) ?? {}, unknownFields)
}

/** As `decodeRequest`, for a body that is a JSON value already. */
export function checkRequest(given: unknown, unknownFields: UnknownFields): DecodedRequest {
  if (!isObject(given)) throw invalidJson(`expected object with an action, got ${jsonTypeOf(given)}`)
  const request = withoutNulls(given)
  if (isObject(request.action)) request.action = withoutNulls(request.action)
  if (!requestCheck.accepts(request)) throw invalidJson(shapeFault(request))
  const { action } = request
  if (action?.kind === undefined || action.kind === '') throw invalidAction('action.kind is required')
  if (unknownFields === 'refuse') refuseUnknown(request)
  return { ...request, action: { ...action, kind: action.kind } }
}

/** Names of the fields of an action in other interfaces. */
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

function shapeFault(request: Record<string, unknown>): string {
  const { path, text, found } = requestCheck.faultOf(request)
  return `${path}: ${text}${path === 'action' ? `, got ${jsonTypeOf(found)}` : ''}`
}
