/** /adapters: what agents may ask for, what that would become, and asking for it. */
import { type AnyElysia, t } from 'elysia'
import { readBody, traceIdOf, WRITE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { capabilities, toolManifest } from '../adapter-v1/manifest.ts'
import { actionInputs } from '../executors/action-inputs.ts'
import { submitAction, translateAction } from '../scheduler/actions.ts'
import type { Intake } from '../scheduler/submit.ts'

export interface AdapterRoutes {
  readonly intake: Intake
  readonly maxBodyBytes: number
}

export function addAdapterRoutes(app: AnyElysia, { intake, maxBodyBytes }: AdapterRoutes): AnyElysia {
  const callOf = (body: unknown) => ({ body: body as Uint8Array, maxGraphBytes: maxBodyBytes })
  return app
    .get('/adapters/capabilities', () => capabilities)
    .get('/adapters/tools', () => toolManifest(actionInputs))
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
        const answer = await submitAction(intake, callOf(body), traceIdOf(set))
        set.status = 202
        return answer
      },
      { body: t.Any(), parse: [({ request }) => readBody(request, maxBodyBytes)] },
    )
}
