/** The page of the service: readiness, load, and counts since its start. */
import { useContext, useState } from 'preact/hooks'
import type { CapacityResponse } from '../../../shared/contract/capacity.ts'
import type { HealthResponse, MetricsResponse } from '../../../shared/contract/control.ts'
import { countText, elapsedText, timeText, uptimeMs } from '../model/amounts.ts'
import { signedInName } from '../model/session.ts'
import { CapacityPanel } from './capacity.tsx'
import { Note } from './parts.tsx'
import { PauseForm } from './pauses.tsx'
import { CurrentSession, RightButton, useLack } from './session.tsx'
import { useJson } from './use-json.ts'

interface ServicePageProps {
  readonly now: number
  readonly capacity: CapacityResponse | undefined
  /** The pauses have changed. */
  readonly onPauses: () => void
}

export function ServicePage({ now, capacity, onPauses }: ServicePageProps) {
  const [isPausing, setIsPausing] = useState(false)
  // The page reads the counts every ten seconds while it is visible.
  const version = Math.floor(now / 10_000)
  const { value: health, fault } = useJson<HealthResponse>('/health', version)
  const { value: metrics } = useJson<MetricsResponse>('/metrics', version)
  const session = useContext(CurrentSession)
  const tenant = session?.tenant
  const lack = useLack('operate')
  return (
    <div class="service-page">
      <div class="service-head">
        <h1>Service</h1>
        {tenant === undefined && (
          <RightButton lack={lack} class="small" onClick={() => setIsPausing(true)}>
            Pause …
          </RightButton>
        )}
      </div>
      {isPausing && (
        <PauseForm
          types={Object.keys(metrics?.by_type ?? {})}
          onPaused={onPauses}
          onClose={() => setIsPausing(false)}
        />
      )}
      {fault !== undefined && <Note kind="fault">{fault.message}</Note>}
      {health?.ready === false && <Note kind="fault">The service takes no graphs: {health.reason}</Note>}
      {health !== undefined && (
        <dl class="facts">
          <div class="fact">
            <dt>State</dt>
            <dd>{health.ready === false ? 'takes no graphs' : 'ready'}</dd>
          </div>
          <div class="fact">
            <dt>Up for</dt>
            <dd>{elapsedText(uptimeMs(health.uptime))}</dd>
          </div>
          {session?.by === 'session' && (
            <div class="fact">
              <dt>Signed in</dt>
              <dd>
                as {signedInName(session)}
                {tenant !== undefined && ` of the tenant ${tenant}`}, until {timeText(session.expires!)}, with the
                rights {session.rights.join(', ')}
              </dd>
            </div>
          )}
        </dl>
      )}
      {capacity !== undefined && <CapacityPanel capacity={capacity} now={now} />}
      {metrics !== undefined && (
        <>
          <h2>{tenant === undefined ? 'Tasks since its start' : `Tasks of ${tenant}`}</h2>
          <div class="tiles">
            <Tile name={tenant === undefined ? 'accepted' : 'kept'} value={metrics.tasks_total} />
            <Tile name="running" value={metrics.tasks_running} />
            <Tile name="succeeded" value={metrics.tasks_succeeded} />
            <Tile name="failed" value={metrics.tasks_failed} />
          </div>
          <h2>By type</h2>
          {Object.keys(metrics.by_type).length === 0 ? (
            <Note kind="quiet">None yet.</Note>
          ) : (
            <dl class="facts">
              {Object.entries(metrics.by_type)
                .sort(([, a], [, b]) => b - a)
                .map(([type, count]) => (
                  <div class="fact" key={type}>
                    <dt>{type}</dt>
                    <dd>{countText(count)}</dd>
                  </div>
                ))}
            </dl>
          )}
        </>
      )}
    </div>
  )
}

const Tile = ({ name, value }: { name: string; value: number }) => (
  <div class="tile">
    <span class="value">{countText(value)}</span>
    <span class="name">{name}</span>
  </div>
)
