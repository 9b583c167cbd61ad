/** /runtime: load and capacity of this service and of its runtime services. */
import type { AnyElysia } from 'elysia'
import { CapacityResponse } from '../../shared/contract/capacity.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { capacityNow } from '../operations/capacity.ts'
import type { OperationParts } from '../operations/parts.ts'

export const addCapacityRoute = (app: AnyElysia, parts: OperationParts): AnyElysia =>
  app.get(
    '/runtime',
    (): Promise<CapacityResponse> => capacityNow(parts),
    described({
      section: 'The service',
      summary: 'Read slots and capacity',
      description:
        'Slots and queue of this service; capacity, reservations and queue of its runtime services, at most one second old. The token of this service is enough: control calls the runtime service with its own. Tasks and tenants of the runtime services are not named.',
      answers: { 200: json(CapacityResponse, 'What is in use, and what there is.') },
    }),
  )
