/** /health: the service is there, since when. /readyz: it takes in graphs. */
import type { AnyElysia } from 'elysia'
import type { HealthResponse, ReadyResponse } from '../../shared/contract/control.ts'
import { formatUptime } from '../../shared/duration.ts'
import { ServiceError } from '../../shared/errors.ts'
import type { Readiness } from '../operations/readiness.ts'

/** Fixed by the specification; the build's own version is `--version`. */
const HEALTH_VERSION = 'v1.0.0'

/** `startedAt` is `performance.now()` at start. */
export const addHealthRoutes = (app: AnyElysia, readiness: Pick<Readiness, 'fault'>, startedAt: number): AnyElysia =>
  app
    .get('/health', (): HealthResponse => {
      const reason = readiness.fault()
      return {
        status: 'ok',
        version: HEALTH_VERSION,
        uptime: formatUptime(performance.now() - startedAt),
        ...(reason !== undefined && { ready: false, reason }),
      }
    })
    .get('/readyz', (): ReadyResponse => {
      const reason = readiness.fault()
      if (reason !== undefined) throw new ServiceError(503, reason)
      return { status: 'ready', version: HEALTH_VERSION }
    })
