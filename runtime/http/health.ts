/** /healthz: the service is up. /readyz: the service can take tasks, which a probe proves. */
import type { AnyElysia } from 'elysia'
import { RuntimeHealth } from '../../shared/contract/runtime-info.ts'
import type { KnownTokens } from '../../shared/http/known-tokens.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { VERSION } from '../../shared/process/version.ts'
import type { Readiness } from '../store/readiness.ts'
import type { Secrets } from '../store/secrets.ts'
import type { LateSubmissions } from '../tasks/late-submissions.ts'

export interface HealthRoutes {
  /** Undefined without --tokens-file. */
  readonly tokens?: Pick<KnownTokens, 'fault'> | undefined
  readonly readiness: Readiness
  readonly secrets: Pick<Secrets, 'fault'>
  readonly late: Pick<LateSubmissions, 'bar' | 'clock'>
}

const section = 'The service'

export const addHealthRoutes = (app: AnyElysia, { readiness, late, secrets, tokens }: HealthRoutes): AnyElysia =>
  app
    .get(
      '/healthz',
      (): RuntimeHealth => {
        const fault = secrets.fault()
        const tokensFault = tokens?.fault
        return {
          ...{ status: 'ok', version: VERSION, clock: late.clock },
          ...(tokensFault !== undefined && { tokens_fault: tokensFault }),
          ...(fault !== undefined && { secrets_fault: fault }),
        }
      },
      described({
        section,
        right: 'none',
        summary: 'Check that the service lives',
        answers: { 200: json(RuntimeHealth, 'The service lives.') },
      }),
    )
    .get(
      '/readyz',
      async (): Promise<RuntimeHealth> => {
        await readiness.check()
        return { status: 'ready', version: VERSION }
      },
      described({
        section,
        right: 'none',
        summary: 'Check that the service accepts tasks',
        answers: { 200: json(RuntimeHealth, 'A task would be accepted.') },
        errors: { 503: 'No task would be accepted. The message is the reason.' },
      }),
    )
