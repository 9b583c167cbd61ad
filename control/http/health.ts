/** /health: the service is there, since when. */
import type { AnyElysia } from 'elysia'
import type { HealthResponse } from '../../shared/contract/control.ts'
import { formatUptime } from '../../shared/duration.ts'

/** Fixed by the specification; the build's own version is `--version`. */
const HEALTH_VERSION = 'v1.0.0'

export function addHealthRoute(app: AnyElysia, startedAt: number): AnyElysia {
  return app.get(
    '/health',
    (): HealthResponse => ({
      status: 'ok',
      version: HEALTH_VERSION,
      uptime: formatUptime(performance.now() - startedAt),
    }),
  )
}
