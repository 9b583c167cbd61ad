/** /runtimes: the pool of runtime services. /runtime: load and capacity of this service and of them. */
import type { AnyElysia } from 'elysia'
import { CapacityResponse } from '../../shared/contract/capacity.ts'
import { GraphPauseRequest, MAX_PAUSE_BODY_BYTES } from '../../shared/contract/pauses.ts'
import {
  MAX_RUNTIME_BODY_BYTES,
  PooledRuntime,
  RuntimeRegistration,
  RuntimeRemoval,
  RuntimesResponse,
} from '../../shared/contract/runtimes.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, json, truth } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { capacityNow } from '../operations/capacity.ts'
import { MISSING_REPLICAS_HEADER } from '../operations/joined-pages.ts'
import type { OperationParts } from '../operations/parts.ts'
import { bodyIn, pauseOf } from '../operations/pause.ts'
import { addRuntime, drainRuntime, listRuntimes, removeRuntime } from '../operations/runtimes.ts'
import { truthOf } from './query-values.ts'

const section = 'Runtime services'
const params = { name: 'Name of the runtime service.' }
const UNKNOWN = { 404: 'There is no such runtime service.' }
const MISSING_ATTEMPTS = 'With a database: numbers of the replicas that did not tell of their attempts.'
const NOT_STORED = { 503: 'The service cannot store the change.' }

const VERBS = [
  {
    verb: 'drain',
    isDraining: true,
    summary: 'Drain a runtime service',
    description: 'It gets no new tasks. Those that it has go on.',
  },
  {
    verb: 'undrain',
    isDraining: false,
    summary: 'Give a runtime service tasks again',
    description: 'Ends the drain.',
  },
] as const

export function addRuntimeRoutes(app: AnyElysia, parts: OperationParts): void {
  app
    .get(
      '/runtime',
      (): Promise<CapacityResponse> => capacityNow(parts),
      described({
        section: 'The service',
        right: 'read',
        isOfService: true,
        summary: 'Read slots and capacity',
        description:
          'Slots and queue of this service; capacity, reservations and queue of its runtime services, at most one second old. The token of this service is enough: control calls the runtime service with its own. Tasks and tenants of the runtime services are not named.',
        answers: { 200: json(CapacityResponse, 'What is in use, and what there is.') },
      }),
    )
    .get(
      '/runtimes',
      async ({ set }): Promise<RuntimesResponse> => {
        const { missing, ...list } = await listRuntimes(parts)
        if (missing.length > 0) set.headers[MISSING_REPLICAS_HEADER] = missing.join(',')
        return list
      },
      described({
        section,
        right: 'read',
        isOfService: true,
        summary: 'List runtime services',
        description: 'With what each has and has reserved, at most one second old.',
        answers: { 200: json(RuntimesResponse, 'All runtime services.', { 'X-Missing-Replicas': MISSING_ATTEMPTS }) },
      }),
    )
    .post(
      '/runtimes',
      async ({ request, set }): Promise<PooledRuntime> => {
        const { runtime, isNew } = await addRuntime(parts, await readBody(app, request, MAX_RUNTIME_BODY_BYTES))
        set.status = isNew ? 201 : 200
        return runtime
      },
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary: 'Add a runtime service',
        description:
          'Control sends it tasks, with the token that is given here and no other. The same name and address again replaces the labels, and the token if there is one.',
        body: RuntimeRegistration,
        example: { name: 'gpu-1', url: 'http://10.0.0.7:18080', labels: { gpu: '' } },
        answers: {
          200: json(PooledRuntime, 'It was there before.'),
          201: json(PooledRuntime, 'It is new, and kept.'),
        },
        errors: {
          400: 'The body is invalid.',
          409: 'The name is set by --runtime-url, or has attempts at another address; another name has the address; or there are too many.',
          413: 'The body is too large.',
          ...NOT_STORED,
        },
      }),
    )
    .delete(
      '/runtimes/:name',
      ({ params, query }): Promise<RuntimeRemoval> => removeRuntime(parts, params.name, truthOf('lost', query.lost)),
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary: 'Remove a runtime service',
        params,
        query: {
          lost: truth(
            'true: its machine is gone for good. Its attempts fail with external_failure, retryable; if it comes back, they are ended there.',
          ),
        },
        answers: { 200: json(RuntimeRemoval, 'It is removed, and that is kept.') },
        errors: {
          400: 'A parameter is invalid.',
          ...UNKNOWN,
          409: 'It has attempts and is not lost, or --with-runtime started it.',
          ...NOT_STORED,
        },
      }),
    )
  for (const { verb, isDraining, summary, description } of VERBS) {
    app.post(
      `/runtimes/:name/${verb}`,
      async ({ params, request }): Promise<PooledRuntime> => {
        const body = await readBody(app, request, MAX_PAUSE_BODY_BYTES)
        const { why } = isDraining ? bodyIn(parts, GraphPauseRequest, body) : {}
        return drainRuntime(parts, params.name, isDraining ? pauseOf(undefined, callerOf(request), why) : undefined)
      },
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary,
        description,
        params,
        ...(isDraining && { body: GraphPauseRequest, example: { why: 'The rack is being moved.' } }),
        answers: { 200: json(PooledRuntime, 'The change is kept.') },
        errors: {
          ...(isDraining && { 400: 'The body is invalid.', 413: 'The body is too large.' }),
          ...{ ...UNKNOWN, ...NOT_STORED },
        },
      }),
    )
  }
}
