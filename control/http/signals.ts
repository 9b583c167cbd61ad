/** /tasks/{id}/signal: ends a task that waits for it. The same below /graphs/{id}/tasks. */

import type { AnyElysia } from 'elysia'
import { TaskRecord } from '../../shared/contract/control.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { MAX_SIGNAL_BYTES } from '../../shared/contract/signal.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { signalTask } from '../operations/signal-task.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { TASK_PLACES, type TaskPlace } from './task-places.ts'

const SignalValue = Type.Unknown({ title: 'SignalValue', description: 'Any JSON value; null without a body.' })

export function addSignalRoutes(app: AnyElysia, partsFor: PartsFor): void {
  for (const place of TASK_PLACES) addRoute(app, partsFor, place)
}

function addRoute(app: AnyElysia, partsFor: PartsFor, { path, noun, params, errors, addressIn }: TaskPlace): void {
  app.post(
    `${path}/signal`,
    async ({ params, request }) =>
      signalTask(partsFor(request), addressIn(params), await readBody(app, request, MAX_SIGNAL_BYTES)),
    described({
      section: 'Tasks',
      right: 'answer',
      summary: `Signal to ${noun}`,
      description:
        'The task, of type wait, succeeds with the value in the body as its result. The same value again gets the record again.',
      params,
      body: SignalValue,
      example: { build: 42 },
      answers: { 200: json(TaskRecord, 'The signal is on disk: the record of the task.') },
      errors: {
        ...errors,
        400: 'The body is no JSON.',
        409: 'The task is no wait, takes no signal, does not wait yet, or has another end.',
        413: 'The body is too large.',
        503: 'The service cannot store the signal.',
      },
    }),
  )
}
