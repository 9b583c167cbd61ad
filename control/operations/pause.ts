/** Pauses and resumes graphs, types of tasks and the whole service. Changes are kept before the answer. */
import type { TObject } from '@sinclair/typebox'
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import {
  type GraphPauseAnswer,
  GraphPauseRequest,
  type ListedPause,
  MAX_PAUSED_TYPES,
  type PauseAnswer,
  PauseRequest,
  ResumeRequest,
} from '../../shared/contract/pauses.ts'
import type { RetryRequest } from '../../shared/contract/retry.ts'
import type { Caller } from '../../shared/http/callers.ts'
import { runSync } from '../../shared/process/steps.ts'
import { FREE_FIELDS, type UnknownFields } from '../../shared/request/unknown-names.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import { refuseUnknownFields, refuseWrongForm } from '../json/request-fields.ts'
import { normalizeTool } from '../rules/normalize.ts'
import { type Pause, shownPause } from '../rules/pause.ts'
import { isKnownType, unknownTypeText } from '../rules/validate.ts'
import { SERVICE } from '../task/pauses.ts'
import { ensureMayCancel } from './cancel.ts'
import { knownGraph } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'

/** Nothing of the graph starts until it is resumed. Paused again, it keeps its `since`. Throws 400, 403, 404, 409 and 503. */
export async function pauseGraph(
  parts: OperationParts,
  id: string,
  body: Uint8Array,
  by: Caller | undefined,
): Promise<GraphPauseAnswer> {
  const { why } = bodyIn(parts, GraphPauseRequest, body)
  const graph = knownGraph(parts.store, id)
  ensureMayCancel([{ graph }], by)
  if (graph.endedAt !== undefined) throw new ServiceError(409, `graph has ended: ${id}`)
  parts.keeper.assertWritable()
  const pause = pauseOf(graph.pause, by, why)
  parts.store.apply({ kind: 'graph-paused', graph, pause, at: Date.now() })
  parts.log.info('a graph was paused', { trace_id: graph.traceId, graph_id: id, ...toldPause(pause) })
  await parts.keeper.kept('promise')
  return { graph_id: id, paused: true, ...shownPause(pause) }
}

/** The graph goes on, as far as neither its types nor the service are paused. Throws as `pauseGraph`. */
export async function resumeGraph(
  parts: OperationParts,
  id: string,
  by: Caller | undefined,
): Promise<GraphPauseAnswer> {
  const graph = knownGraph(parts.store, id)
  ensureMayCancel([{ graph }], by)
  parts.keeper.assertWritable()
  if (graph.pause !== undefined) {
    const name = by?.grant.name
    parts.store.apply({ kind: 'graph-resumed', graph, at: Date.now(), ...(name !== undefined && { by: name }) })
    parts.log.info('a graph was resumed', { trace_id: graph.traceId, graph_id: id, ...toldPause({ by: name }) })
  }
  await parts.keeper.kept('promise')
  return { graph_id: id, paused: false }
}

/** The pauses of types and of the service, the oldest first. */
export const listPauses = ({ keeper }: OperationParts): readonly ListedPause[] =>
  [...keeper.pauses.all]
    .sort(([, a], [, b]) => a.since - b.since)
    .map(([key, pause]) => ({ ...typeIn(key), ...shownPause(pause) }))

/** No task of the type in `body` starts, or none at all. Throws 400, 409 and 503. */
export async function pause(parts: OperationParts, body: Uint8Array, by: Caller | undefined): Promise<PauseAnswer> {
  const { type, why } = bodyIn(parts, PauseRequest, body)
  const { pauses } = parts.keeper
  const key = keyOf(parts, type)
  const known = pauses.all.get(key)
  if (known === undefined && key !== SERVICE && pauses.all.size >= MAX_PAUSED_TYPES)
    throw new ServiceError(409, `${MAX_PAUSED_TYPES} types are paused already: resume one first, or pause the service`)
  parts.keeper.assertWritable()
  const made = pauseOf(known, by, why)
  await pauses.set(key, made)
  parts.log.warn('no task starts: paused', { ...typeIn(key), ...toldPause(made) })
  return { ...typeIn(key), paused: true, ...shownPause(made) }
}

/** Ends such a pause. Throws as `pause`. */
export async function resume(parts: OperationParts, body: Uint8Array, by: Caller | undefined): Promise<PauseAnswer> {
  const { type } = bodyIn(parts, ResumeRequest, body)
  const { pauses } = parts.keeper
  const key = keyOf(parts, type)
  parts.keeper.assertWritable()
  if (pauses.all.has(key)) {
    await pauses.set(key, undefined)
    parts.log.info('tasks start again: resumed', { ...typeIn(key), ...toldPause({ by: by?.grant.name }) })
  }
  return { ...typeIn(key), paused: false }
}

const typeIn = (key: string) => (key === SERVICE ? {} : { type: key })

/** `earlier` goes on, with who and why of now. */
export const pauseOf = (earlier: Pause | undefined, by: Caller | undefined, why: string | null | undefined): Pause => ({
  since: earlier?.since ?? Date.now(),
  ...(by !== undefined && { by: by.grant.name }),
  ...(why != null && why !== '' && { why }),
})

/** The fields of log lines. */
export const toldPause = ({ by, why }: { readonly by?: string | undefined; readonly why?: string }) => ({
  ...(by !== undefined && { by }),
  ...(why !== undefined && { why }),
})

/** The key of the pause of `type`, which may be in a short form, such as `shell`. Throws 400. */
function keyOf({ executors }: OperationParts, type: string | null | undefined): string {
  if (type == null) return SERVICE
  if (!isKnownType(type, executors.types)) throw badRequest(unknownTypeText(type, executors.types))
  const ref = normalizeTool(type, undefined)
  return ref.toolName === undefined ? ref.type : `${ref.type}.${ref.toolName}`
}

type RequestOf<T> = T extends typeof RetryRequest
  ? RetryRequest
  : T extends typeof PauseRequest
    ? PauseRequest
    : T extends typeof ResumeRequest
      ? ResumeRequest
      : GraphPauseRequest

/** The request in a body, which may be empty. Throws 400. */
export function bodyIn<const T extends TObject>(
  { unknownFields }: { readonly unknownFields: UnknownFields },
  schema: T,
  body: Uint8Array,
): RequestOf<T> {
  const decoded = body.length === 0 ? {} : runSync(decodeJson(body, {}))
  if (!isObject(decoded)) throw invalidJson(`expected object, got ${jsonTypeOf(decoded)}`)
  const given = withoutNulls(decoded)
  const fields = Object.keys(schema.properties)
  refuseUnknownFields(given, { names: fields, free: FREE_FIELDS, synonyms: { reason: 'why' } }, unknownFields)
  refuseWrongForm(given, schema)
  if (typeof given.why === 'string' && !given.why.isWellFormed())
    throw badRequest('why has half of a character (a lone surrogate)')
  return given as RequestOf<T>
}
