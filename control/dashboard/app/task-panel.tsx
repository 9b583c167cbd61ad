/** The panel of one task: its type, why it waits or failed, its log, its input and output, its attempts. */
import type { TaskRecord } from '../../../shared/contract/control.ts'
import { LogView } from '../log/log-view.tsx'
import { StyledText } from '../log/styled-text.tsx'
import { agoText, durationText, timeText } from '../model/amounts.ts'
import { endMs } from '../model/critical-path.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import { hasEnded, LOOK_WORDS, lookOf, typeWord, waitingSentence } from '../model/looks.ts'
import { type GraphPlace, hashOf, TASK_TABS } from '../model/place.ts'
import { waitingOf } from '../model/waiting.ts'
import type { GraphTask } from '../model/wire.ts'
import { ApprovalCard } from './approval-card.tsx'
import { FilesView } from './files-view.tsx'
import { JsonTree } from './json-tree.tsx'
import { NetworkView } from './network-view.tsx'
import { CopyButton, Id, Note } from './parts.tsx'
import { RightButton, useGraphLacks } from './session.tsx'
import { StateIcon } from './state-icon.tsx'
import { useJson } from './use-json.ts'

const TAB_WORDS = {
  overview: 'Overview',
  log: 'Log',
  input: 'Input',
  output: 'Output',
  attempts: 'Attempts',
  network: 'Network',
  files: 'Files',
} as const

/** Only a runtime service lists connections and has files. */
const tabsOf = ({ type }: GraphTask) =>
  TASK_TABS.filter((tab) => (tab !== 'network' && tab !== 'files') || type === 'runtime')

/** Tabs that do not show the record, and so not its fault. */
const TABS_OF_THEIR_OWN: ReadonlySet<string> = new Set(['log', 'network', 'files'])

export interface TaskPanelProps {
  readonly watch: GraphWatch
  readonly task: GraphTask
  readonly place: GraphPlace
  readonly now: number
  readonly onCancel: () => void
  /** Runs the task and all that depend on it again in this graph. Undefined unless it failed or was cancelled. */
  readonly onRetry: (() => void) | undefined
  /** Runs the task and all that depend on it again in a new graph. Undefined while the graph runs. */
  readonly onRerun: (() => void) | undefined
  readonly onClose: () => void
}

export function TaskPanel({ watch, task, place, now, onCancel, onRetry, onRerun, onClose }: TaskPanelProps) {
  const path = `/graphs/${encodeURIComponent(watch.summary.graph_id)}/tasks/${encodeURIComponent(task.id)}`
  const look = lookOf(task)
  const { cancelLack, retryLack, submitLack } = useGraphLacks(watch.summary)
  const version = `${look} ${task.attempt ?? 0}`
  const { value: record, fault } = useJson<TaskRecord>(path, version)
  return (
    <section class="task-panel" aria-label={`Task ${task.id}`}>
      <header>
        <StateIcon look={look} />
        <h2>
          <Id text={task.id} />
        </h2>
        <CopyButton text={task.id} label="Copy id" />
        {!hasEnded(task.status) && (
          <RightButton lack={cancelLack} class="small" onClick={onCancel}>
            Cancel
          </RightButton>
        )}
        {onRetry !== undefined && (
          <RightButton lack={retryLack} class="small" onClick={onRetry}>
            Retry
          </RightButton>
        )}
        {onRerun !== undefined && (
          <RightButton lack={submitLack} class="small" onClick={onRerun}>
            Rerun from here
          </RightButton>
        )}
        <button type="button" class="small close" onClick={onClose} aria-label="Close the task">
          ✕
        </button>
      </header>
      <nav class="tabs" aria-label="Parts of the task">
        {tabsOf(task).map((tab) => (
          <a key={tab} href={hashOf({ ...place, tab })} aria-current={tab === place.tab ? 'page' : undefined}>
            {TAB_WORDS[tab]}
            {tab === 'attempts' && (task.attempt ?? 1) > 1 && <span class="badge">{task.attempt}</span>}
          </a>
        ))}
      </nav>
      <div class={`tab-body tab-${place.tab}`}>
        {fault !== undefined && !TABS_OF_THEIR_OWN.has(place.tab) && <Note kind="fault">{fault.message}</Note>}
        {place.tab === 'overview' && look === 'asking' && (
          <ApprovalCard label="Approval" id={task.id} path={path} record={record} waiting={task.waiting!} now={now} />
        )}
        {place.tab === 'overview' && <Overview task={task} record={record} watch={watch} place={place} now={now} />}
        {place.tab === 'log' && <LogView path={`${path}/logs`} version={task.attempt ?? 0} name={task.id} />}
        {place.tab === 'input' && record?.resolved_input !== undefined && (
          <>
            <h3>As it ran</h3>
            <ValueView value={record.resolved_input} isRead empty="" />
            <h3 class="more">As submitted</h3>
          </>
        )}
        {place.tab === 'input' && (
          <ValueView
            value={record?.input ?? record?.params}
            isRead={record !== undefined}
            empty="The task has no input."
          />
        )}
        {place.tab === 'output' && (
          <ValueView value={record?.result} isRead={record !== undefined} empty="The task has no result." />
        )}
        {place.tab === 'attempts' && <Attempts task={task} record={record} now={now} />}
        {place.tab === 'network' && <NetworkView path={path} task={task} now={now} />}
        {place.tab === 'files' && <FilesView key={path} path={path} task={task} />}
      </div>
    </section>
  )
}

function Overview({
  task,
  record,
  watch,
  place,
  now,
}: {
  task: GraphTask
  record: TaskRecord | undefined
  watch: GraphWatch
  place: GraphPlace
  now: number
}) {
  const look = lookOf(task)
  const waiting = waitingSentence({ ...task, waiting: waitingOf(task, watch) } as GraphTask, now)
  const followers = watch.edges.filter(([from]) => from === task.id).map(([, to]) => to)
  const progress = record?.progress?.at(-1)?.message
  return (
    <>
      {task.error !== undefined && <pre class="error-text">{task.error}</pre>}
      <dl class="facts">
        <Fact name="State">
          {LOOK_WORDS[look]}
          {waiting !== undefined && look !== 'asking' && <span class="waiting">{waiting}</span>}
        </Fact>
        <Fact name="Type">{typeWord(task)}</Fact>
        {task.code !== undefined && <Fact name="Kind of failure">{task.code}</Fact>}
        {task.started_at !== undefined && (
          <>
            <Fact name="Started">
              <time dateTime={task.started_at} title={task.started_at}>
                {timeText(task.started_at)}
              </time>{' '}
              <span class="quiet">{agoText(task.started_at, now)}</span>
            </Fact>
            <Fact name={task.finished_at === undefined ? 'Running for' : 'Took'}>
              {durationText(endMs(task, now) - Date.parse(task.started_at))}
            </Fact>
          </>
        )}
        <Fact name="Attempt">
          {task.attempt ?? 'none yet'}
          {record !== undefined && record.retry > 0 && ` of at most ${record.retry + 1}`}
        </Fact>
        {record?.timeout !== undefined && record.timeout > 0 && (
          <Fact name="Runs at most">{durationText(record.timeout)}</Fact>
        )}
        {record?.queue_timeout !== undefined && record.queue_timeout > 0 && (
          <Fact name="Waits at most">{durationText(record.queue_timeout)}</Fact>
        )}
        {record?.priority !== undefined && <Fact name="Priority">{record.priority}</Fact>}
        {record?.not_before !== undefined && (
          <Fact name="Not before">
            {typeof record.not_before === 'number'
              ? `${durationText(record.not_before)} after its dependencies`
              : timeText(record.not_before)}
          </Fact>
        )}
        {progress !== undefined && <Fact name="Progress">{progress}</Fact>}
        {task.run_if !== undefined && <Fact name="Runs">{RUN_IF_WORDS[task.run_if]}</Fact>}
        {record?.when !== undefined && (
          <Fact name="Only if">
            <JsonTree value={record.when} />
          </Fact>
        )}
        {task.continue_on_error === true && <Fact name="If it fails">the graph goes on</Fact>}
        {record?.dynamic === true && <Fact name="Its result">may add tasks to the graph</Fact>}
        {record?.added_by !== undefined && (
          <Fact name="Added by">
            <TaskLinks ids={[record.added_by]} place={place} watch={watch} />
          </Fact>
        )}
        {task.reused_from !== undefined && (
          <Fact name="Reused from">
            <a class="link" href={hashOf(placeOfTask(task.reused_from))}>
              {task.reused_from.graph_id}/{task.reused_from.task_id}
            </a>
          </Fact>
        )}
        <Fact name="Waits for">
          <TaskLinks ids={task.depends_on ?? []} place={place} watch={watch} />
        </Fact>
        <Fact name="Waited for by">
          <TaskLinks ids={followers} place={place} watch={watch} />
        </Fact>
        {Object.entries(record?.annotations ?? {}).map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </>
  )
}

const RUN_IF_WORDS = {
  success: 'once all dependencies have succeeded',
  failed: 'once all dependencies have ended, if one failed',
  always: 'once all dependencies have ended',
} as const

const placeOfTask = ({ graph_id, task_id }: { graph_id: string; task_id: string }): GraphPlace => ({
  ...{ at: 'graph', graphId: graph_id, view: 'graph', taskId: task_id, tab: 'overview' },
})

const Fact = ({ name, children }: { name: string; children: preact.ComponentChildren }) => (
  <div class="fact">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

/** Maximum links to other tasks. */
const MAX_LINKS = 30

function TaskLinks({ ids, place, watch }: { ids: readonly string[]; place: GraphPlace; watch: GraphWatch }) {
  if (ids.length === 0) return <span class="quiet">nothing</span>
  return (
    <span class="task-links">
      {ids.slice(0, MAX_LINKS).map((id) => {
        const task = watch.tasks[watch.indexOf.get(id) ?? -1]
        return (
          <a key={id} href={hashOf({ ...place, taskId: id })}>
            {task !== undefined && <StateIcon look={lookOf(task)} />}
            <Id text={id} />
          </a>
        )
      })}
      {ids.length > MAX_LINKS && <span class="quiet">and {ids.length - MAX_LINKS} more</span>}
    </span>
  )
}

function ValueView({ value, isRead, empty }: { value: unknown; isRead: boolean; empty: string }) {
  if (value === undefined) return <Note kind="quiet">{isRead ? empty : 'Reading …'}</Note>
  return (
    <div class="value">
      <CopyButton text={JSON.stringify(value, null, 2)} label="Copy JSON" />
      <JsonTree value={value} />
    </div>
  )
}

/** Maximum lines of the last output of an attempt. */
const MAX_TAIL_LINES = 40

function Attempts({ task, record, now }: { task: GraphTask; record: TaskRecord | undefined; now: number }) {
  const attempts = record?.attempts ?? []
  const isAlone = attempts.length === 0
  if (isAlone && task.started_at === undefined) return <Note kind="quiet">No attempt has started.</Note>
  if (isAlone) {
    return (
      <Note kind="quiet">
        One attempt, {durationText(endMs(task, now) - Date.parse(task.started_at!))}. Retries appear here.
      </Note>
    )
  }
  return (
    <ol class="attempts">
      {attempts.map(({ attempt, started_at, finished_at, error, code, exit_code, tail }) => (
        <li key={attempt}>
          <h3>
            <StateIcon look={error !== undefined ? 'failed' : finished_at === undefined ? lookOf(task) : 'success'} />{' '}
            Attempt {attempt}
            <span class="time">
              {started_at !== undefined &&
                finished_at !== undefined &&
                durationText(Date.parse(finished_at) - Date.parse(started_at))}
            </span>
          </h3>
          {error !== undefined && <pre class="error-text">{error}</pre>}
          <p class="quiet">
            {[code, exit_code === undefined ? undefined : `exit code ${exit_code}`, started_at]
              .filter(Boolean)
              .join(' · ')}
          </p>
          {tail !== undefined && <StyledText text={tail} maxLines={MAX_TAIL_LINES} />}
        </li>
      ))}
    </ol>
  )
}
