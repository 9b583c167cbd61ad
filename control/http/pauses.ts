/** /pause, /resume and /pauses: nothing new starts. The same for one graph below /graphs/{id}. */

import type { AnyElysia } from 'elysia'
import {
  GraphPauseAnswer,
  GraphPauseRequest,
  ListedPause,
  MAX_PAUSE_BODY_BYTES,
  PauseAnswer,
  PauseRequest,
  ResumeRequest,
} from '../../shared/contract/pauses.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import type { OperationParts } from '../operations/parts.ts'
import { listPauses, pause, pauseGraph, resume, resumeGraph } from '../operations/pause.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { graphErrors } from './task-places.ts'

const section = 'Pauses'
const params = { id: 'Id of the graph.' }
const ERRORS = {
  400: 'The body is invalid, or names an unknown type.',
  413: 'The body is too large.',
  503: 'The service cannot store the change.',
}
const OF_GRAPH = { ...graphErrors('There is no such graph.'), 503: 'The service cannot store the change.' }

export function addPauseRoutes(app: AnyElysia, parts: OperationParts, partsFor: PartsFor): void {
  const bodyOf = (request: Request) => readBody(app, request, MAX_PAUSE_BODY_BYTES)
  app
    .get(
      '/pauses',
      (): readonly ListedPause[] => listPauses(parts),
      described({
        section,
        right: 'read',
        isOfService: true,
        summary: 'List what is paused',
        description: 'The service and types of tasks. GET /graphs?paused=true lists paused graphs.',
        answers: { 200: json(Type.Array(ListedPause), 'The pauses, the oldest first.') },
      }),
    )
    .post(
      '/pause',
      async ({ request }): Promise<PauseAnswer> => pause(parts, await bodyOf(request), callerOf(request)),
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary: 'Pause the service, or a type of tasks',
        description: 'No task starts any more, or none of that type, until POST /resume. What runs goes on.',
        body: PauseRequest,
        example: { type: 'runtime', why: 'The rack is being moved.' },
        answers: { 200: json(PauseAnswer, 'The pause is kept.') },
        errors: { ...ERRORS, 409: 'Too many types are paused.' },
      }),
    )
    .post(
      '/resume',
      async ({ request }): Promise<PauseAnswer> => resume(parts, await bodyOf(request), callerOf(request)),
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary: 'Resume the service, or a type of tasks',
        description: 'Ends that pause. Others go on.',
        body: ResumeRequest,
        example: { type: 'runtime' },
        answers: { 200: json(PauseAnswer, 'The end of the pause is kept.') },
        errors: ERRORS,
      }),
    )
    .post(
      '/graphs/:id/pause',
      async ({ params, request }): Promise<GraphPauseAnswer> =>
        pauseGraph(partsFor(request), params.id, await bodyOf(request), callerOf(request)),
      described({
        section,
        right: 'cancel',
        summary: 'Pause a graph',
        description: 'Nothing of it starts until it is resumed. What runs goes on. Its end ends the pause.',
        params,
        body: GraphPauseRequest,
        example: { why: 'The plan is being looked at.' },
        answers: { 200: json(GraphPauseAnswer, 'The pause is on disk.') },
        errors: {
          ...OF_GRAPH,
          400: 'The body is invalid.',
          409: 'The graph has ended.',
          413: 'The body is too large.',
        },
      }),
    )
    .post(
      '/graphs/:id/resume',
      ({ params, request }): Promise<GraphPauseAnswer> => resumeGraph(partsFor(request), params.id, callerOf(request)),
      described({
        section,
        right: 'cancel',
        summary: 'Resume a graph',
        description: 'Ends its pause. It goes on as far as neither the service nor its types are paused.',
        params,
        answers: { 200: json(GraphPauseAnswer, 'The end of the pause is on disk.') },
        errors: OF_GRAPH,
      }),
    )
}
