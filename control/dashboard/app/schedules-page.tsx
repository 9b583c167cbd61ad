/** Schedules: when each is due, how its last graphs ended, what was missed. */
import { useEffect, useState } from 'preact/hooks'
import type { Schedule, ScheduleFile, ScheduleSummary, ScheduleTriggered } from '../../../shared/contract/schedules.ts'
import { agoText, countText, durationText, timeText } from '../model/amounts.ts'
import { graphLook } from '../model/counts.ts'
import { LOOK_WORDS } from '../model/looks.ts'
import { hashOf, type SchedulesPlace } from '../model/place.ts'
import { RequestKey } from '../model/request-key.ts'
import { ruleText, troubles, zoneOf } from '../model/schedule.ts'
import { search } from '../model/search.ts'
import type { GraphSummary } from '../model/wire.ts'
import { postOnce, request } from './api.ts'
import { DueTimes } from './due-times.tsx'
import { Ago, Confirm, Note } from './parts.tsx'
import { ScheduleForm } from './schedule-form.tsx'
import { RightButton, useLack } from './session.tsx'
import { StateIcon } from './state-icon.tsx'
import { useJson } from './use-json.ts'
import type { Go } from './use-place.ts'

/** Schedules that are shown at once. Each takes two requests. */
const PAGE_SIZE = 20

/** Outcomes of each schedule. */
const SHOWN_OUTCOMES = 30

/** Milliseconds between two reads of the list. What has not changed there is not read again. */
const READ_EVERY_MS = 5_000

export function SchedulesPage({ place, now, go }: { place: SchedulesPlace; now: number; go: Go }) {
  const { name, isEditing = false } = place
  const [changes, setChanges] = useState(0)
  const [query, setQuery] = useState('')
  const [most, setMost] = useState(PAGE_SIZE)
  const { value, fault } = useJson<readonly ScheduleSummary[]>(
    '/schedules',
    `${Math.floor(now / READ_EVERY_MS)} ${changes}`,
  )
  const known = useLast(value)
  const files = useLast(useJson<readonly ScheduleFile[]>('/schedule-files', Math.floor(now / READ_EVERY_MS)).value)
  if (isEditing) {
    return (
      <ScheduleForm
        key={name ?? ''}
        name={name}
        onSaved={(saved) => go({ at: 'schedules', name: saved })}
        onClose={() => go(name === undefined ? { at: 'schedules' } : { at: 'schedules', name })}
      />
    )
  }
  const lack = useLack('operate')
  const all = known ?? []
  const shown =
    name === undefined
      ? search(all, query, (schedule) => schedule.name, all.length)
      : all.filter((schedule) => schedule.name === name)
  return (
    <div class="schedules-page">
      <div class="schedules-head">
        <h1>Schedules</h1>
        {name !== undefined && (
          <a class="button small" href={hashOf({ at: 'schedules' })}>
            All schedules
          </a>
        )}
        {name === undefined && all.length > 1 && (
          <input
            type="search"
            aria-label="Find a schedule"
            placeholder="Find a schedule"
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
        )}
        <span class="room" />
        {lack === undefined && (
          <a class="button small" href={hashOf({ at: 'schedules', isEditing: true })}>
            Add a schedule
          </a>
        )}
      </div>
      {fault !== undefined && <Note kind="fault">{fault.message}</Note>}
      {files?.map(
        ({ file, schedule, error }) =>
          error !== undefined &&
          (name === undefined || schedule === name) && (
            <Note kind="fault" key={file}>
              The file {file} cannot be used: {error}
            </Note>
          ),
      )}
      {known === undefined && fault === undefined && <Note kind="quiet">Reading the schedules …</Note>}
      {known?.length === 0 && name === undefined && (
        <Note kind="quiet">There are none yet. A schedule submits a graph at certain times.</Note>
      )}
      {known !== undefined && name !== undefined && shown.length === 0 && (
        <Note kind="fault">There is no schedule {name}. It may have been deleted; its graphs stay.</Note>
      )}
      {known !== undefined && query !== '' && shown.length === 0 && <Note kind="quiet">Nothing matches.</Note>}
      <ul class="schedules">
        {shown.slice(0, most).map((schedule) => (
          <Card
            key={schedule.name}
            summary={schedule}
            now={now}
            onChanged={() => setChanges((count) => count + 1)}
            onStarted={(graphId) => go({ at: 'graph', graphId, view: 'graph', tab: 'overview' })}
            onDeleted={() => {
              setChanges((count) => count + 1)
              if (name !== undefined) go({ at: 'schedules' })
            }}
          />
        ))}
      </ul>
      {shown.length > most && (
        <p>
          <button type="button" class="small" onClick={() => setMost((count) => count + PAGE_SIZE)}>
            Show more of {countText(shown.length)}
          </button>
        </p>
      )}
    </div>
  )
}

/** The last value that there was: between two reads, and after a read that failed. */
function useLast<T>(value: T | undefined): T | undefined {
  const [last, setLast] = useState(value)
  useEffect(() => {
    if (value !== undefined) setLast(value)
  }, [value])
  return value ?? last
}

interface CardProps {
  readonly summary: ScheduleSummary
  readonly now: number
  readonly onChanged: () => void
  readonly onStarted: (graphId: string) => void
  readonly onDeleted: () => void
}

function Card({ summary, now, onChanged, onStarted, onDeleted }: CardProps) {
  const { name, paused, running, file } = summary
  const path = `/schedules/${encodeURIComponent(name)}`
  const version = JSON.stringify(summary)
  const schedule = useLast(useJson<Schedule>(path, version).value)
  const label = encodeURIComponent(`schedule=${name}`)
  const graphs = useLast(useJson<GraphSummary[]>(`/graphs?label=${label}&limit=${SHOWN_OUTCOMES}`, version).value)
  const [fault, setFault] = useState<string>()
  const [isAsked, setIsAsked] = useState(false)
  const [isBusy, setIsBusy] = useState(false)
  const [key] = useState(() => new RequestKey())
  const lack = useLack('operate')
  const act = async (change: () => Promise<unknown>, then: () => void = onChanged) => {
    setFault(undefined)
    setIsBusy(true)
    try {
      await change()
      then()
    } catch (error) {
      setFault((error as Error).message)
    } finally {
      setIsBusy(false)
    }
  }
  const trigger = async () => {
    const { graph_id } = await postOnce<ScheduleTriggered>(key, `${path}/trigger`, '')
    onStarted(graph_id)
  }
  const last = graphs?.[0]
  return (
    <li class={`schedule${paused ? ' paused' : ''}`}>
      <div class="schedule-head">
        <h2>
          <a href={hashOf({ at: 'schedules', name })}>{name}</a>
        </h2>
        <span class="rule">{ruleText(summary)}</span>
        {file !== undefined && <span class="badge">from the file {file}</span>}
        {paused && <span class="badge">paused</span>}
        {running > 0 && <span class="badge">{countText(running)} running</span>}
        <span class="room" />
        <RightButton
          lack={lack}
          class="small"
          disabled={isBusy}
          onClick={() => void act(() => request(`${path}/${paused ? 'resume' : 'pause'}`, { method: 'POST' }))}
        >
          {paused ? 'Resume' : 'Pause'}
        </RightButton>
        <RightButton lack={lack} class="small" disabled={isBusy} onClick={() => void act(trigger, () => {})}>
          Run now
        </RightButton>
        {file === undefined && lack === undefined && (
          <>
            <a class="button small" href={hashOf({ at: 'schedules', name, isEditing: true })}>
              Edit
            </a>
            <button type="button" class="small danger" disabled={isBusy} onClick={() => setIsAsked(true)}>
              Delete
            </button>
          </>
        )}
      </div>
      {fault !== undefined && <Note kind="fault">{fault}</Note>}
      {troubles(summary).map((text) => (
        <p class="trouble" key={text}>
          {text}
        </p>
      ))}
      <dl class="facts">
        <div class="fact">
          <dt>Last</dt>
          <dd>
            {last === undefined ? (
              'none'
            ) : (
              <a class="link" href={hashOf({ at: 'graph', graphId: last.graph_id, view: 'graph', tab: 'overview' })}>
                {LOOK_WORDS[graphLook(last)]}, <Ago time={last.created_at} now={now} />
                {last.duration_ms !== undefined && `, took ${durationText(last.duration_ms)}`}
              </a>
            )}
          </dd>
        </div>
        <div class="fact">
          <dt>Next</dt>
          <dd>
            <DueTimes times={schedule?.next ?? summary.next} zone={zoneOf(summary)} isPaused={paused} now={now} />
          </dd>
        </div>
        {schedule?.on_failure != null && (
          <div class="fact">
            <dt>On failure</dt>
            <dd>POST to {schedule.on_failure.url}</dd>
          </div>
        )}
      </dl>
      {graphs !== undefined && graphs.length > 0 && <Outcomes graphs={graphs} now={now} name={name} />}
      {isAsked && (
        <Confirm
          title={`Delete the schedule ${name}?`}
          text="Nothing is due any more. Its graphs stay, and go on."
          word="Delete it"
          onYes={() => {
            setIsAsked(false)
            void act(() => request(path, { method: 'DELETE' }), onDeleted)
          }}
          onNo={() => setIsAsked(false)}
        />
      )}
    </li>
  )
}

/** The last graphs, the newest at the right. */
const Outcomes = ({ graphs, now, name }: { graphs: readonly GraphSummary[]; now: number; name: string }) => (
  <ol class="outcomes" aria-label={`Last graphs of ${name}, the newest last`}>
    {graphs.toReversed().map((graph) => {
      const look = graphLook(graph)
      const due = graph.labels?.due
      const took = graph.duration_ms === undefined ? '' : `, took ${durationText(graph.duration_ms)}`
      const text = `${LOOK_WORDS[look]}, ${due === undefined ? 'run by hand' : `due ${timeText(due)}`}${took}`
      return (
        <li key={graph.graph_id}>
          <a
            href={hashOf({ at: 'graph', graphId: graph.graph_id, view: 'graph', tab: 'overview' })}
            title={`${text}, ${agoText(graph.created_at, now)}`}
          >
            <span class="for-readers">{text}</span>
            <StateIcon look={look} />
          </a>
        </li>
      )
    })}
  </ol>
)
