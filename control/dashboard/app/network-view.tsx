/** The connections of a task whose network has rules, and their totals. All of it is text: a task chooses the names. */
import type { NetworkConnection, TaskNetwork } from '../../../shared/contract/task-network.ts'
import { agoText, bytesText, countText, durationText } from '../model/amounts.ts'
import { targetOf, totalsText, whyOf } from '../model/connections.ts'
import { hasEnded } from '../model/looks.ts'
import type { GraphTask } from '../model/wire.ts'
import { Note } from './parts.tsx'
import { useJson } from './use-json.ts'

/** Milliseconds between two readings while the task runs. */
const READ_AGAIN_MS = 2_000

export function NetworkView({ path, task, now }: { path: string; task: GraphTask; now: number }) {
  const round = hasEnded(task.status) ? 'ended' : Math.floor(now / READ_AGAIN_MS)
  const { value: network, fault } = useJson<TaskNetwork>(`${path}/network`, `${task.attempt ?? 0} ${round}`)
  if (fault !== undefined) return <Note kind="fault">{fault.message}</Note>
  if (network === undefined) return <Note kind="quiet">Reading …</Note>
  if (network.usage === undefined) return <Note kind="quiet">The task has made no connections through rules.</Note>
  return (
    <div class="connections">
      <p class="connection-totals">{totalsText(network)}</p>
      {network.connections.length > 0 && <Connections connections={network.connections} now={now} />}
      {network.unlisted > 0 && <p class="quiet">{countText(network.unlisted)} more are only counted.</p>}
    </div>
  )
}

const Connections = ({ connections, now }: { connections: readonly NetworkConnection[]; now: number }) => (
  <ol aria-label="Connections">
    {connections.map((connection, i) => (
      <Connection key={`${connection.at} ${i}`} connection={connection} now={now} />
    ))}
  </ol>
)

function Connection({ connection, now }: { connection: NetworkConnection; now: number }) {
  const { verdict, rule, at, bytes_sent, bytes_received, duration_ms } = connection
  const why = whyOf(connection)
  const facts = [
    rule === undefined ? undefined : `rule ${rule}`,
    bytes_sent === undefined ? undefined : `${bytesText(bytes_sent)} sent`,
    bytes_received === undefined ? undefined : `${bytesText(bytes_received)} received`,
    duration_ms === undefined ? undefined : durationText(duration_ms),
  ]
  return (
    <li class={`connection verdict-${verdict}`}>
      <p>
        <span class="verdict">{verdict}</span> <span class="target">{targetOf(connection)}</span>{' '}
        <time class="quiet" dateTime={at} title={at}>
          {agoText(at, now)}
        </time>
      </p>
      <p class="quiet">{facts.filter((fact) => fact !== undefined).join(' · ')}</p>
      {why !== undefined && <p>{why}</p>}
    </li>
  )
}
