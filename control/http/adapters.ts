/** /adapters: what agents may ask for, what that would become, and asking for it. */
import { type AnyElysia, t } from 'elysia'
import { readBody, traceIdOf, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { capabilities, type OfferedSkill, toolManifest } from '../adapter-v1/manifest.ts'
import { actionInputs } from '../executors/action-inputs.ts'
import { submitAction, translateAction } from '../scheduler/actions.ts'
import type { Intake } from '../scheduler/submit.ts'
import type { IdempotencyKeys } from '../store/idempotency.ts'

export interface AdapterRoutes {
  readonly intake: Intake
  readonly idempotencyKeys: IdempotencyKeys
  /** What is offered as skills at this moment. */
  readonly listSkills: () => Promise<readonly OfferedSkill[]>
  readonly maxBodyBytes: number
}

export function addAdapterRoutes(app: AnyElysia, routes: AdapterRoutes): AnyElysia {
  const { intake, idempotencyKeys, listSkills, maxBodyBytes } = routes
  const callOf = (body: unknown) => ({ body: body as Uint8Array, maxGraphBytes: maxBodyBytes })
  return app
    .get('/adapters/capabilities', () => capabilities)
    .get('/adapters/tools', async () => toolManifest(actionInputs, await listSkills()))
    .post(
      '/adapters/translate',
      ({ body, server, request }) => {
        server?.timeout(request, WRITE_TIMEOUT_SECONDS)
        return translateAction(intake, callOf(body))
      },
      { body: t.Any(), parse: [({ request }) => readBody(request, maxBodyBytes)] },
    )
    .post(
      '/adapters/actions',
      async ({ body, set, server, request }) => {
        server?.timeout(request, WRITE_TIMEOUT_SECONDS)
        const call = callOf(body)
        const key = request.headers.get('idempotency-key')
        const answer = await idempotencyKeys.once({ scope: 'actions', key, body: call.body }, (sent) =>
          submitAction(intake, call, traceIdOf(set), sent),
        )
        set.status = 202
        return answer
      },
      { body: t.Any(), parse: [({ request }) => readBody(request, maxBodyBytes)] },
    )
}
