/** /adapters: what agents may ask for, what that would become, and asking for it. */
import type { AnyElysia } from 'elysia'
import { readBody, traceIdOf } from '../../shared/http-service.ts'
import { actOnce, translateAction } from '../operations/act.ts'
import { describeAdapter, describeTools } from '../operations/describe.ts'
import type { OperationParts } from '../operations/parts.ts'

export function addAdapterRoutes(app: AnyElysia, parts: OperationParts): AnyElysia {
  const { maxBodyBytes } = parts
  return app
    .get('/adapters/capabilities', describeAdapter)
    .get('/adapters/tools', () => describeTools(parts))
    .post(
      '/adapters/translate',
      async ({ request }) => translateAction(parts, await readBody(app, request, maxBodyBytes)),
      { parse: 'none' },
    )
    .post(
      '/adapters/actions',
      async ({ set, request }) => {
        const body = await readBody(app, request, maxBodyBytes)
        const key = request.headers.get('idempotency-key')
        const answer = await actOnce(parts, body, { traceId: traceIdOf(set), key, caller: request })
        set.status = 202
        return answer
      },
      { parse: 'none' },
    )
}
