/** /adapters: what agents may ask for, what that would become, and asking for it. */
import type { AnyElysia } from 'elysia'
import { readBody, traceIdOf } from '../../shared/http-service.ts'
import { capabilities, type OfferedSkill, toolManifest } from '../adapter-v1/manifest.ts'
import type { IdempotencyKeys } from '../journal/idempotency.ts'
import { submitAction, translateAction } from '../operations/act.ts'
import { actionInputs } from '../operations/action-inputs.ts'
import type { Intake } from '../operations/submit.ts'

export interface AdapterRoutes {
  readonly intake: Intake
  readonly idempotencyKeys: IdempotencyKeys
  /** What is offered as skills at this moment. */
  readonly listSkills: () => Promise<readonly OfferedSkill[]>
  readonly maxBodyBytes: number
}

export function addAdapterRoutes(app: AnyElysia, routes: AdapterRoutes): AnyElysia {
  const { intake, idempotencyKeys, listSkills, maxBodyBytes } = routes
  const callIn = async (request: Request) => ({
    body: await readBody(app, request, maxBodyBytes),
    maxGraphBytes: maxBodyBytes,
  })
  return app
    .get('/adapters/capabilities', () => capabilities)
    .get('/adapters/tools', async () => toolManifest(actionInputs, await listSkills()))
    .post('/adapters/translate', async ({ request }) => translateAction(intake, await callIn(request)), {
      parse: 'none',
    })
    .post(
      '/adapters/actions',
      async ({ set, request }) => {
        const call = await callIn(request)
        const key = request.headers.get('idempotency-key')
        const answer = await idempotencyKeys.once({ scope: 'actions', key, body: call.body }, (sent) =>
          submitAction(intake, call, { traceId: traceIdOf(set), sent, caller: request }),
        )
        set.status = 202
        return answer
      },
      { parse: 'none' },
    )
}
