/** /health: whether the service is up, and since when. /readyz: whether it accepts graphs. */
import type { AnyElysia } from 'elysia'
import { HEALTH_VERSION, HealthResponse, ReadyResponse } from '../../shared/contract/control.ts'
import { ServiceError } from '../../shared/contract/errors.ts'
import type { KnownTokens } from '../../shared/http/known-tokens.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { formatUptime } from '../../shared/settings/duration.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { ReplicaView } from '../log/keeper.ts'
import type { OperationParts } from '../operations/parts.ts'
import { type KeptPauses, SERVICE } from '../task/pauses.ts'

const section = 'The service'

export interface Lifetime {
  /** `performance.now()` at start. */
  readonly startedAt: number
  readonly tokens: Pick<KnownTokens, 'fault'> | undefined
}

export const addHealthRoutes = (
  app: AnyElysia,
  { readiness, keeper, store, secretsFault }: OperationParts,
  { startedAt, tokens }: Lifetime,
): AnyElysia =>
  app
    .get(
      '/health',
      (): HealthResponse => {
        const reason = readiness.fault()
        const rulesFault = secretsFault()
        const { replica } = keeper
        const tokensFault = tokens?.fault
        return {
          status: 'ok',
          version: HEALTH_VERSION,
          uptime: formatUptime(performance.now() - startedAt),
          ...(reason !== undefined && { ready: false, reason }),
          ...pausedIn(keeper.pauses),
          ...(tokensFault !== undefined && { tokens_fault: tokensFault }),
          ...(rulesFault !== undefined && { secrets_fault: rulesFault }),
          ...(replica && { replica: replicaState(replica, store.graphCount, keeper.schedules.filesOf) }),
        }
      },
      described({
        section,
        right: 'none',
        summary: 'Check that the service lives',
        answers: { 200: json(HealthResponse, 'The service lives. With ready false it accepts no graphs.') },
      }),
    )
    .get(
      '/readyz',
      (): ReadyResponse => {
        const reason = readiness.fault()
        if (reason !== undefined) throw new ServiceError(503, reason)
        return { status: 'ready', version: HEALTH_VERSION }
      },
      described({
        section,
        right: 'none',
        summary: 'Check that the service accepts graphs',
        answers: { 200: json(ReadyResponse, 'A graph of one task would be accepted.') },
        errors: { 503: 'No graph would be accepted. The error is the reason.' },
      }),
    )

/** Who and why is for callers with a token: GET /pauses. */
function pausedIn({ all }: KeptPauses): Pick<HealthResponse, 'paused_since' | 'paused_types'> {
  const types = [...all.keys()].filter((key) => key !== SERVICE)
  const service = all.get(SERVICE)
  return {
    ...(service !== undefined && { paused_since: isoTime(service.since) }),
    ...(types.length > 0 && { paused_types: types }),
  }
}

const replicaState = ({ id, epoch, leaseMsLeft, addressFault }: ReplicaView, graphs: number, filesOf?: number) => ({
  ...{ id, epoch, lease_ms_left: leaseMsLeft, graphs },
  ...(filesOf !== undefined && { schedules_dir_of: filesOf }),
  ...(addressFault !== undefined && { address_fault: addressFault }),
})
