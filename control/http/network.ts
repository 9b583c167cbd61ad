/** /tasks/{id}/network: the connections of a task whose network has rules. The same below /graphs/{id}. */
import type { AnyElysia } from 'elysia'
import { TaskNetwork } from '../../shared/contract/task-network.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { traceIdOf } from '../../shared/http/service.ts'
import { readNetwork } from '../operations/task-network.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { TASK_PLACES, type TaskPlace } from './task-places.ts'

export function addNetworkRoutes(app: AnyElysia, partsFor: PartsFor): void {
  for (const place of TASK_PLACES) addNetworkRoute(app, partsFor, place)
}

function addNetworkRoute(
  app: AnyElysia,
  partsFor: PartsFor,
  { path, noun, params, errors, addressIn }: TaskPlace,
): void {
  app.get(
    `${path}/network`,
    ({ params, request, set }) =>
      readNetwork(partsFor(request), addressIn(params), { traceId: traceIdOf(set), signal: request.signal }),
    described({
      section: 'Tasks',
      right: 'read',
      summary: `Read the connections of ${noun}`,
      description:
        'Those of the newest attempt of a runtime task whose network has rules; also while it runs. For another task there are none.',
      params,
      answers: { 200: json(TaskNetwork, 'The totals and the connections.') },
      errors: { ...errors, 503: 'The runtime service does not answer.' },
    }),
  )
}
