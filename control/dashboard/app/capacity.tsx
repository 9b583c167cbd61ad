/** The load of the service: its slots, and its runtime service. A line for the bar on top, and a panel. */
import type { ComponentChildren } from 'preact'
import type {
  CapacityResponse,
  NamedRuntimeCapacity,
  ReplicaState,
  RuntimeCapacity,
} from '../../../shared/contract/capacity.ts'
import { bytesText, countText } from '../model/amounts.ts'
import { Ago, Note } from './parts.tsx'

type Slots = CapacityResponse['slots']

/** `GET /runtime` counts no further in the queue of control. */
const MOST_QUEUED = 1_024

const queuedText = (queued: number): string => (queued < MOST_QUEUED ? String(queued) : `over ${MOST_QUEUED - 1}`)

/** Share of a capacity from which its meter warns. */
const NEARLY_FULL = 0.9

export function CapacityLine({ capacity: { slots, runtimes } }: { capacity: CapacityResponse }) {
  const sum = (amount: (runtime: RuntimeCapacity) => number | undefined) =>
    runtimes.reduce((total, runtime) => total + (amount(runtime) ?? 0), 0)
  const memory = shareOf(
    sum(({ reserved }) => reserved?.memory_bytes),
    sum(({ capacity }) => capacity?.memory_bytes),
  )
  return (
    <a class="capacity-line" href="#/service" title={slotsSentence(slots)}>
      <span class="capacity-word">slots</span>
      <Meter name="Slots" used={slots.used} count={slots.count} text={`${slots.used} of ${slots.count}`} />
      <span>
        {slots.used}/{slots.count}
      </span>
      {slots.queued > 0 && <span class="badge">{queuedText(slots.queued)} wait</span>}
      {memory !== undefined && <span class="capacity-word">memory {Math.round(memory * 100)} %</span>}
    </a>
  )
}

export function CapacityPanel({
  capacity: { slots, runtimes, replicas },
  now,
}: {
  capacity: CapacityResponse
  now: number
}) {
  return (
    <section class="capacity" aria-label="Capacity">
      <h2>Slots</h2>
      <MeterRow
        name="Attempts"
        used={slots.used}
        count={slots.count}
        amountText={String}
        more={slots.queued === 0 ? 'nothing waits for a slot' : `${queuedText(slots.queued)} wait for a slot`}
      />
      {slots.hold !== undefined && <Note kind="fault">Nothing starts: {slots.hold}</Note>}
      <h2>{runtimes.length > 1 ? 'Runtime services' : 'Runtime service'}</h2>
      {runtimes.length === 0 && <Note kind="quiet">There is none. Only tasks of type runtime need one.</Note>}
      {runtimes.map((runtime) => (
        <div key={runtime.name}>
          {(runtimes.length > 1 || runtime.draining) && <RuntimeHead runtime={runtime} />}
          {runtime.state === 'away' ? <Away runtime={runtime} now={now} /> : <Reservations runtime={runtime} />}
        </div>
      ))}
      {replicas !== undefined && <Replicas replicas={replicas} />}
    </section>
  )
}

const Replicas = ({ replicas }: { replicas: readonly ReplicaState[] }) => (
  <>
    <h2>Replicas</h2>
    <dl class="facts">
      {replicas.map((replica) => (
        <div class="fact" key={replica.id}>
          <dt>{replica.id}</dt>
          <dd>{stateOf(replica)}</dd>
        </div>
      ))}
    </dl>
  </>
)

function stateOf({ state, url = 'starting, or without an address', lease_ms_left = 0 }: ReplicaState): string {
  if (state === 'gone') return 'gone, its graphs wait'
  return lease_ms_left > 0 ? url : `${url} is silent`
}

const RuntimeHead = ({ runtime: { name, labels, draining } }: { runtime: NamedRuntimeCapacity }) => (
  <h3>
    {name}
    {Object.entries(labels).map(([label, value]) => (
      <span class="badge" key={label}>
        {value === '' ? label : `${label}=${value}`}
      </span>
    ))}
    {draining && <span class="badge">draining</span>}
  </h3>
)

const Away = ({ runtime: { away_since, reason }, now }: { runtime: RuntimeCapacity; now: number }) => (
  <p class="note quiet">
    Does not answer. Noticed {away_since !== undefined && <Ago time={away_since} now={now} />}: {reason}. Only tasks of
    type runtime need it; they wait for it.
  </p>
)

function Reservations({ runtime: { runtime_id, capacity, reserved, queued = 0 } }: { runtime: RuntimeCapacity }) {
  if (capacity === undefined || reserved === undefined) return null
  return (
    <>
      <MeterRow
        name="Tasks"
        used={reserved.task_slots}
        count={capacity.task_slots}
        amountText={String}
        more={queued === 0 ? 'nothing is queued' : `${countText(queued)} queued`}
      />
      {capacity.memory_bytes !== undefined && (
        <MeterRow
          name="Memory"
          used={reserved.memory_bytes ?? 0}
          count={capacity.memory_bytes}
          amountText={bytesText}
          more="reserved"
        />
      )}
      {capacity.pids !== undefined && (
        <MeterRow
          name="Processes"
          used={reserved.pids ?? 0}
          count={capacity.pids}
          amountText={countText}
          more="reserved"
        />
      )}
      <p class="quiet">{runtime_id}</p>
    </>
  )
}

interface MeterRowProps {
  readonly name: string
  readonly used: number
  readonly count: number
  readonly amountText: (amount: number) => string
  readonly more: ComponentChildren
}

function MeterRow({ name, used, count, amountText, more }: MeterRowProps) {
  const text = `${amountText(used)} of ${amountText(count)}`
  return (
    <div class="meter-row">
      <span>{name}</span>
      <Meter name={name} used={used} count={count} text={text} />
      <span>{text}</span>
      <span class="quiet">{more}</span>
    </div>
  )
}

function Meter({ name, used, count, text }: { name: string; used: number; count: number; text: string }) {
  const share = shareOf(used, count) ?? 0
  return (
    // biome-ignore lint/a11y/useSemanticElements: browsers do not let a meter element be styled alike
    <span
      class={`meter${share >= NEARLY_FULL ? ' nearly-full' : ''}`}
      role="meter"
      aria-label={name}
      aria-valuenow={used}
      aria-valuemin={0}
      aria-valuemax={Math.max(used, count)}
      aria-valuetext={text}
    >
      <span style={{ width: `${share * 100}%` }} />
    </span>
  )
}

const shareOf = (used: number | undefined, count: number | undefined): number | undefined =>
  count === undefined || count === 0 ? undefined : Math.min(1, (used ?? 0) / count)

const slotsSentence = ({ used, count, queued }: Slots): string =>
  `${used} of ${count} slots in use${queued > 0 ? `, ${queuedText(queued)} tasks wait for one` : ''}`
