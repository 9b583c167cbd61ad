/** What is beside the list where no graph is open: what waits for a person, and the last runs of each name. */
import type { TaskRecord } from '../../../shared/contract/control.ts'
import { agoText } from '../model/amounts.ts'
import { graphLook } from '../model/counts.ts'
import { LOOK_WORDS } from '../model/looks.ts'
import { hashOf } from '../model/place.ts'
import { type NamedRuns, runsByName } from '../model/runs.ts'
import type { GraphSummary } from '../model/wire.ts'
import { ApprovalCard } from './approval-card.tsx'
import { graphPath } from './early-work.ts'
import { timeOf } from './graph-list.tsx'
import { Note } from './parts.tsx'
import { TenantLabel } from './session.tsx'
import { StateIcon } from './state-icon.tsx'
import { useJson } from './use-json.ts'

/** Graphs whose questions are shown, questions of one graph, and rows and columns of the grid of runs. */
const MAX_ASKING_GRAPHS = 10
const MAX_QUESTIONS = 10
const MAX_NAMES = 20
const MAX_RUNS = 20

export interface OverviewProps {
  readonly graphs: readonly GraphSummary[]
  /** Graphs of which a task waits for an approval. */
  readonly asking: readonly GraphSummary[]
  readonly onAnswered: () => void
  readonly now: number
}

export function Overview({ graphs, asking, onAnswered, now }: OverviewProps) {
  const named = runsByName(graphs, MAX_RUNS).slice(0, MAX_NAMES)
  return (
    <div class="overview">
      {asking.length > 0 && (
        <section aria-labelledby="needs-you">
          <h2 id="needs-you">Needs you</h2>
          {asking.slice(0, MAX_ASKING_GRAPHS).map((graph) => (
            <Questions key={graph.graph_id} graph={graph} onAnswered={onAnswered} now={now} />
          ))}
          {asking.length > MAX_ASKING_GRAPHS && (
            <Note kind="quiet">
              {asking.length - MAX_ASKING_GRAPHS} more graphs wait: the list has a filter for them.
            </Note>
          )}
        </section>
      )}
      {named.length > 0 && (
        <section aria-labelledby="runs-by-name">
          <h2 id="runs-by-name">Runs by name</h2>
          <div class="run-grid">
            {named.map((runs) => (
              <RunStrip key={`${runs.tenant} ${runs.name}`} {...runs} now={now} />
            ))}
          </div>
        </section>
      )}
      <Note kind="quiet">
        Choose a graph. <kbd>j</kbd> and <kbd>k</kbd> go from graph to graph, <kbd>?</kbd> shows all keys.
      </Note>
    </div>
  )
}

interface QuestionsProps {
  readonly graph: GraphSummary
  readonly onAnswered: () => void
  readonly now: number
}

/** What the tasks of a graph ask. */
function Questions({ graph, onAnswered, now }: QuestionsProps) {
  const version = graph.waiting?.approval
  const path = `${graphPath(graph.graph_id)}/tasks?status=pending&type=approval&limit=${MAX_QUESTIONS}`
  const { value = [], fault } = useJson<TaskRecord[]>(path, version)
  return (
    <>
      {fault !== undefined && <Note kind="fault">{fault.message}</Note>}
      {value.map(({ id }) => (
        <Question key={id} {...{ graph, id, version, onAnswered, now }} />
      ))}
    </>
  )
}

/** Nothing for an approval that waits for other tasks. */
function Question({ graph, id, version, onAnswered, now }: QuestionsProps & { id: string; version: unknown }) {
  const { graph_id, name = graph_id } = graph
  const path = `${graphPath(graph_id)}/tasks/${encodeURIComponent(id)}`
  const { value: record } = useJson<TaskRecord>(path, version)
  if (record?.waiting?.reason !== 'approval') return null
  return (
    <article class="question" aria-label={`${name}, ${id}`}>
      <h3>
        <StateIcon look="asking" />
        <a href={hashOf({ at: 'graph', graphId: graph_id, view: 'graph', taskId: id, tab: 'overview' })}>
          {name} / {id}
        </a>
      </h3>
      <ApprovalCard {...{ id, path, record, now, onAnswered }} waiting={record.waiting} />
    </article>
  )
}

function RunStrip({ name, tenant, runs, now }: NamedRuns & { now: number }) {
  const last = runs.at(-1)!
  return (
    <>
      <a class="run-name" href={hashOf({ at: 'runs', name, tenant })} title={name}>
        {name} <TenantLabel tenant={tenant} />
      </a>
      <span class="run-strip">
        {runs.map((graph) => {
          const word = `${LOOK_WORDS[graphLook(graph)]}, ${timeOf(graph, now)}, ${agoText(graph.created_at, now)}`
          const hash = hashOf({ at: 'graph', graphId: graph.graph_id, view: 'graph', tab: 'overview' })
          return (
            <a class="run" key={graph.graph_id} href={hash} title={word}>
              <StateIcon look={graphLook(graph)} word={`${name}: ${word}`} />
            </a>
          )
        })}
      </span>
      <span class="time">{timeOf(last, now)}</span>
    </>
  )
}
