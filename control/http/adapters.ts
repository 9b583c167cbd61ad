/** /adapters: what agents may ask for, what that would become, and asking for it. */
import type { AnyElysia } from 'elysia'
import { readBody, traceIdOf } from '../../shared/http-service.ts'
import { submitAction, translateAction } from '../operations/act.ts'
import { describeAdapter, describeTools } from '../operations/describe.ts'
import type { OperationParts } from '../operations/parts.ts'

export function addAdapterRoutes(app: AnyElysia, parts: OperationParts): AnyElysia {
  const { idempotencyKeys, maxBodyBytes } = parts
  const callIn = async (request: Request) => ({
    body: await readBody(app, request, maxBodyBytes),
    maxGraphBytes: maxBodyBytes,
  })
  return app
    .get('/adapters/capabilities', describeAdapter)
    .get('/adapters/tools', () => describeTools(parts))
    .post('/adapters/translate', async ({ request }) => translateAction(parts, await callIn(request)), {
      parse: 'none',
    })
    .post(
      '/adapters/actions',
      async ({ set, request }) => {
        const call = await callIn(request)
        const key = request.headers.get('idempotency-key')
        const answer = await idempotencyKeys.once({ scope: 'actions', key, body: call.body }, (sent) =>
          submitAction(parts, call, { traceId: traceIdOf(set), sent, caller: request }),
        )
        set.status = 202
        return answer
      },
      { parse: 'none' },
    )
}
