/** /healthz: the service is up. /readyz: the service can take tasks, which a probe proves. */
import type { AnyElysia } from 'elysia'
import type { RuntimeHealth } from '../../shared/contract/runtime-info.ts'
import { VERSION } from '../../shared/version.ts'
import type { Readiness } from '../store/readiness.ts'

export interface HealthRoutes {
  readonly readiness: Readiness
}

export const addHealthRoutes = (app: AnyElysia, { readiness }: HealthRoutes): AnyElysia =>
  app
    .get('/healthz', (): RuntimeHealth => ({ status: 'ok', version: VERSION }))
    .get('/readyz', async (): Promise<RuntimeHealth> => {
      await readiness.check()
      return { status: 'ready', version: VERSION }
    })
