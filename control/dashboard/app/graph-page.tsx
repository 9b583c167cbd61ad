/** One graph: its state in a line, why it failed, its views, and the task that is selected. */
import { memo } from 'preact/compat'
import { useCallback, useMemo, useState } from 'preact/hooks'
import type { RerunRequest, RerunResponse } from '../../../shared/contract/rerun.ts'
import { GraphView } from '../graph-view/graph-view.tsx'
import { HeatMap } from '../heat-map/heat-map.tsx'
import { agoText, countText, durationText, remainingText, timeText } from '../model/amounts.ts'
import { doneText, endedCount, graphLook } from '../model/counts.ts'
import { criticalPath } from '../model/critical-path.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import { hasEnded, LOOK_WORDS, waitingSentence } from '../model/looks.ts'
import { changedText } from '../model/patch.ts'
import { pauseSentence } from '../model/pause.ts'
import { GRAPH_VIEWS, type GraphPlace, type GraphView as GraphViewName, type Groups, hashOf } from '../model/place.ts'
import { RequestKey } from '../model/request-key.ts'
import { waitingOf } from '../model/waiting.ts'
import type { GraphSummary, GraphTask } from '../model/wire.ts'
import { Waterfall } from '../waterfall/waterfall.tsx'
import { postOnce, request } from './api.ts'
import { runsPath } from './early-work.ts'
import { FailureCard } from './failure-card.tsx'
import { timeOf } from './graph-list.tsx'
import { Confirm, CopyButton, Id, Note, StateBar } from './parts.tsx'
import { RerunForm } from './rerun-form.tsx'
import { RightButton, TenantLabel, useGraphLacks } from './session.tsx'
import { StateIcon } from './state-icon.tsx'
import { StatePages } from './state-pages.tsx'
import { TaskPanel } from './task-panel.tsx'
import { TaskTable } from './task-table.tsx'
import { useDistantTask } from './use-distant-task.ts'
import { useJson } from './use-json.ts'
import type { Go } from './use-place.ts'

const VIEW_WORDS: Readonly<Record<GraphViewName, string>> = {
  graph: 'Graph',
  map: 'Map',
  waterfall: 'Waterfall',
  table: 'Table',
}

/** Number of earlier graphs of the same name for the estimate. */
const ESTIMATE_FROM = 5

export interface GraphPageProps {
  readonly watch: GraphWatch
  readonly place: GraphPlace
  readonly now: number
  readonly go: Go
  /** The subject of the open question whether to cancel, after the key `c`. */
  readonly asked: 'graph' | 'task' | undefined
  readonly onAsk: (what: 'graph' | 'task' | undefined) => void
}

/** Rendered only when its properties change. The bar on top and the list change more often. */
export const GraphPage = memo(function GraphPage({ watch, place, now, go, asked, onAsk }: GraphPageProps) {
  const { summary, tasks, edges } = watch
  const critical = useMemo(() => criticalPath(tasks, edges, now), [tasks, edges])
  const task = useTask(watch, place.taskId, now)
  const select = useCallback((taskId: string | undefined) => go({ ...place, taskId }), [go, place])
  const groups = place.groups ?? foldedBefore.get(place.graphId)
  const onGroups = useCallback(
    (changed: Groups) => {
      keepFolded(place.graphId, changed)
      go({ ...place, groups: changed }, 'replace')
    },
    [go, place],
  )
  const [fault, setFault] = useState<string>()
  const act = async (path: string, method: string) => {
    onAsk(undefined)
    setFault(undefined)
    try {
      await request(path, { method })
    } catch (error) {
      setFault((error as Error).message)
    }
  }
  const [isAsking, setIsAsking] = useState(false)
  const [rerunKey] = useState(() => new RequestKey())
  const [isChoosing, setIsChoosing] = useState(false)
  const rerun = async (how: RerunRequest) => {
    setFault(undefined)
    setIsAsking(true)
    try {
      const { graph_id } = await postOnce<RerunResponse>(rerunKey, `${graphPath}/rerun`, JSON.stringify(how))
      go({ at: 'graph', graphId: graph_id, view: 'graph', tab: 'overview' })
    } catch (error) {
      setFault((error as Error).message)
    } finally {
      setIsAsking(false)
    }
  }
  const { cancelLack } = useGraphLacks(summary)
  const canRerun = summary.state !== 'running' && !watch.isRemoved && !isAsking
  const canRetry = summary.state !== 'success' && !watch.isRemoved
  const graphPath = `/graphs/${encodeURIComponent(summary.graph_id)}`
  return (
    <div class={`graph-page${task === undefined ? '' : ' has-task'}`}>
      <div class="graph-main">
        <Head
          watch={watch}
          now={now}
          onCancel={() => onAsk('graph')}
          onPause={() => void act(`${graphPath}/${summary.pause === undefined ? 'pause' : 'resume'}`, 'POST')}
          onRetry={canRetry && summary.state !== 'running' ? () => void act(`${graphPath}/retry`, 'POST') : undefined}
          onRerun={canRerun && summary.state !== 'success' ? () => void rerun({ from: 'failed' }) : undefined}
          onChoose={canRerun ? () => setIsChoosing(true) : undefined}
        />
        {watch.isRemoved && (
          <Note kind="quiet">This graph was removed from the service. The page shows what it knew last.</Note>
        )}
        {fault !== undefined && <Note kind="fault">{fault}</Note>}
        {watch.rootCause !== undefined && <FailureCard cause={watch.rootCause} place={place} />}
        <WhyStill watch={watch} now={now} />
        <nav class="tabs" aria-label="Views of the graph">
          {GRAPH_VIEWS.map((view) => (
            <a
              key={view}
              href={hashOf({ ...place, view, state: undefined })}
              aria-current={view === place.view ? 'page' : undefined}
            >
              {VIEW_WORDS[view]}
            </a>
          ))}
        </nav>
        {watch.isTruncated && (
          <Note kind="quiet">
            {place.view === 'map' ? 'A cell each have' : 'Shown are'} the first {countText(tasks.length)} of{' '}
            {countText(summary.task_count)} tasks. The counts are those of all: on the{' '}
            <a href={hashOf({ ...place, view: 'map' })}>map</a> they lead to the tasks. Search finds any task by its
            whole id.
          </Note>
        )}
        {place.view === 'graph' && (
          <GraphView
            watch={watch}
            critical={critical.ids}
            now={now}
            selectedId={place.taskId}
            onSelect={select}
            groups={groups ?? NO_GROUPS}
            onGroups={onGroups}
          />
        )}
        {place.view === 'map' && <HeatMap watch={watch} place={place} onSelect={select} />}
        {place.view === 'waterfall' && (
          <Waterfall watch={watch} critical={critical} now={now} selectedId={place.taskId} onSelect={select} />
        )}
        {place.view === 'table' && watch.isTruncated && place.state !== undefined && (
          <StatePages key={place.state} watch={watch} place={place} state={place.state} now={now} />
        )}
        {place.view === 'table' && (!watch.isTruncated || place.state === undefined) && (
          <TaskTable key={place.state ?? ''} watch={watch} place={place} now={now} />
        )}
      </div>
      {task !== undefined && (
        <TaskPanel
          key={task.id}
          watch={watch}
          task={task}
          place={place}
          now={now}
          onCancel={() => onAsk('task')}
          onRetry={
            canRetry && isRetried(task)
              ? () => void act(`${graphPath}/tasks/${encodeURIComponent(task.id)}/retry`, 'POST')
              : undefined
          }
          onRerun={canRerun ? () => void rerun({ from: [task.parent ?? task.id] }) : undefined}
          onClose={() => select(undefined)}
        />
      )}
      {isChoosing && (
        <RerunForm
          roots={watch.isTruncated ? undefined : rootsOf(tasks)}
          isSuccess={summary.state === 'success'}
          onRun={(how) => void rerun(how)}
          onClose={() => setIsChoosing(false)}
        />
      )}
      {asked === 'graph' && summary.state === 'running' && cancelLack === undefined && (
        <Confirm
          title="Cancel this graph?"
          text={`${summary.task_count - endedCount(summary.counts)} tasks have not ended. Those that run are stopped; those that wait never run.`}
          word="Cancel the graph"
          onYes={() => void act(`${graphPath}/cancel`, 'POST')}
          onNo={() => onAsk(undefined)}
        />
      )}
      {asked === 'task' && task !== undefined && !hasEnded(task.status) && cancelLack === undefined && (
        <Confirm
          title={`Cancel ${task.id}?`}
          text="Tasks that wait for it are skipped."
          word="Cancel the task"
          onYes={() => void act(`${graphPath}/tasks/${encodeURIComponent(task.id)}/cancel`, 'POST')}
          onNo={() => onAsk(undefined)}
        />
      )}
    </div>
  )
})

const NO_GROUPS: Groups = {}

/** The groups that a user has opened or folded, by the id of the graph: for who comes back to it by another link. */
const foldedBefore = new Map<string, Groups>()

/** Graphs that it keeps them for. */
const MAX_FOLDED_GRAPHS = 100

function keepFolded(graphId: string, groups: Groups): void {
  foldedBefore.delete(graphId)
  foldedBefore.set(graphId, groups)
  for (const oldest of foldedBefore.keys()) if (foldedBefore.size > MAX_FOLDED_GRAPHS) foldedBefore.delete(oldest)
}

/** Whether the service may run the task again in its graph. */
const isRetried = ({ status }: GraphTask): boolean => status === 'failed' || status === 'cancelled'

/** Tasks that wait for no other one. */
const rootsOf = (tasks: readonly GraphTask[]): readonly string[] =>
  tasks.filter(({ parent, depends_on = [] }) => parent === undefined && depends_on.length === 0).map(({ id }) => id)

/** Milliseconds between two reads of a task that the page does not have. */
const DISTANT_TASK_EVERY_MS = 2_000

/** A task of the graph. If the page does not have it, reads it. */
function useTask(watch: GraphWatch, taskId: string | undefined, now: number): GraphTask | undefined {
  const task = taskId === undefined ? undefined : watch.tasks[watch.indexOf.get(taskId) ?? -1]
  const turn = watch.summary.state === 'running' ? Math.floor(now / DISTANT_TASK_EVERY_MS) : 0
  const distant = useDistantTask(watch, taskId, turn)
  return task ?? distant
}

interface HeadProps {
  readonly watch: GraphWatch
  readonly now: number
  readonly onCancel: () => void
  /** Pauses the graph, or resumes it. */
  readonly onPause: () => void
  /** Runs what failed or was cancelled again in this graph. Undefined if there is nothing to run. */
  readonly onRetry: (() => void) | undefined
  /** Runs what did not succeed again, in a new graph. Undefined if there is nothing to run. */
  readonly onRerun: (() => void) | undefined
  /** Asks how the graph runs again. Undefined while it cannot. */
  readonly onChoose: (() => void) | undefined
}

function Head({ watch, now, onCancel, onPause, onRetry, onRerun, onChoose }: HeadProps) {
  const { summary } = watch
  const { graph_id, name, state, counts, task_count, labels, tenant, pause } = summary
  const look = graphLook(summary)
  const left = useTimeLeft(summary, now)
  const changed = changedText(summary)
  const { cancelLack, retryLack, submitLack } = useGraphLacks(summary)
  return (
    <header class="graph-head">
      <div class="graph-title">
        <StateIcon look={look} />
        <h1>{name ?? <Id text={graph_id} />}</h1>
        <CopyButton text={graph_id} label="Copy id" />
        {state === 'running' && (
          <RightButton lack={cancelLack} class="small" onClick={onPause}>
            {pause === undefined ? 'Pause' : 'Resume'}
          </RightButton>
        )}
        {state === 'running' && (
          <RightButton lack={cancelLack} class="small danger" onClick={onCancel}>
            Cancel
          </RightButton>
        )}
        {onRetry !== undefined && (
          <RightButton lack={retryLack} class="small" onClick={onRetry}>
            Retry
          </RightButton>
        )}
        {onRerun !== undefined && (
          <RightButton lack={submitLack} class="small rerun" onClick={onRerun}>
            Rerun what failed
          </RightButton>
        )}
        {onChoose !== undefined && (
          <RightButton lack={submitLack} class="small" onClick={onChoose}>
            Rerun …
          </RightButton>
        )}
        {name !== undefined && (
          <a class="button small" href={hashOf({ at: 'runs', name, tenant })}>
            Runs
          </a>
        )}
      </div>
      <p class="graph-state" role="status">
        <strong>{LOOK_WORDS[look]}</strong>
        <span>{timeOf(summary, now)}</span>
        <span>{doneText(counts, task_count)}</span>
        {changed !== undefined && <span>{changed}</span>}
        {left !== undefined && <span class="quiet">{left}</span>}
        <span class="quiet" title={timeText(summary.created_at)}>
          submitted {agoText(summary.created_at, now)}
        </span>
        <TenantLabel tenant={tenant} />
        {Object.entries(labels ?? {}).map(([key, value]) =>
          key === 'schedule' && tenant === undefined ? (
            <a class="label" key={key} href={hashOf({ at: 'schedules', name: value })} title="Open the schedule">
              {key}={value}
            </a>
          ) : (
            <span class="label" key={key}>
              {key}={value}
            </span>
          ),
        )}
      </p>
      <StateBar counts={counts} total={task_count} />
      {pause !== undefined && <Note kind="quiet">{pauseSentence(pause, 'This graph was', now)}</Note>}
    </header>
  )
}

/** The estimated rest of the duration, from earlier graphs of the same name and tenant. */
function useTimeLeft({ name, tenant, state, created_at, started_at }: GraphSummary, now: number): string | undefined {
  const path =
    name === undefined || state !== 'running' ? undefined : `${runsPath({ name, tenant }, ESTIMATE_FROM)}&state=success`
  const { value } = useJson<GraphSummary[]>(path, name)
  const times = (value ?? []).flatMap(({ duration_ms }) => (duration_ms === undefined ? [] : [duration_ms]))
  if (times.length === 0) return undefined
  const usual = times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!
  const leftMs = usual - (now - Date.parse(started_at ?? created_at))
  return leftMs > 0 ? `about ${remainingText(leftMs)} left` : `longer than the usual ${durationText(usual)}`
}

/** One sentence if nothing runs although the graph has not ended. */
function WhyStill({ watch, now }: { watch: GraphWatch; now: number }) {
  const { counts, state } = watch.summary
  if (state !== 'running' || watch.isTruncated) return null // other tasks than those of the page may run
  const isMoving = watch.tasks.some((task) => task.status === 'running' && task.waiting === undefined)
  if (isMoving || (counts.cancelling ?? 0) > 0) return null
  const held = watch.tasks
    .map((task): GraphTask => ({ ...task, waiting: waitingOf(task, watch) }) as GraphTask)
    .find((task) => task.waiting !== undefined && task.waiting.reason !== 'dependencies')
  if (held === undefined) return null
  return (
    <Note kind="quiet">
      Nothing of this graph runs: {held.id} {waitingSentence(held, now)}.
    </Note>
  )
}
