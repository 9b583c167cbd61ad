/** Runs side by side: a row for each task, a column for each run. Of two runs, what differs. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { agoText, countText, durationText, timeText } from '../model/amounts.ts'
import { graphLook } from '../model/counts.ts'
import { LOOK_WORDS, lookOf } from '../model/looks.ts'
import { hashOf, type RunsPlace } from '../model/place.ts'
import { differenceText, tasksOverRuns } from '../model/runs.ts'
import type { GraphDetails, GraphSummary, GraphTask } from '../model/wire.ts'
import { getJson } from './api.ts'
import { graphPath, runsPath } from './early-work.ts'
import { type Fault, faultOf } from './fault.ts'
import { timeOf } from './graph-list.tsx'
import { Id, Note } from './parts.tsx'
import { TenantLabel } from './session.tsx'
import { StateIcon } from './state-icon.tsx'
import { useJson } from './use-json.ts'

/** Runs of one name. */
const MAX_RUNS = 12

/** Rows. More would take a browser longer to draw than a person waits. */
const MAX_ROWS = 500

/** Milliseconds between two reads while one of the runs has not ended. */
const READ_EVERY_MS = 3_000

export function RunsPage({ place, now }: { place: RunsPlace; now: number }) {
  const { name, tenant, ids } = place
  const [isMoving, setIsMoving] = useState(false)
  const turn = isMoving ? Math.floor(now / READ_EVERY_MS) : 0
  const listPath = ids === undefined ? runsPath({ name: name ?? '', tenant }, MAX_RUNS) : undefined
  const list = useJson<GraphSummary[]>(listPath, turn)
  const chosen = ids ?? list.value?.map(({ graph_id }) => graph_id).toReversed()
  const { runs, fault } = useRuns(chosen, turn)
  const isRunning = runs?.some((run) => run?.state === 'running') === true
  useEffect(() => setIsMoving(isRunning), [isRunning])
  const rows = useMemo(() => tasksOverRuns(runs ?? []), [runs])
  const isPair = runs?.length === 2
  const anyFault = fault ?? list.fault
  return (
    <div class="runs-page">
      <h1>{name ?? 'Runs side by side'}</h1>
      <TenantLabel tenant={tenant} />
      {anyFault !== undefined && <Note kind="fault">{anyFault.message}</Note>}
      {list.value?.length === 0 && <Note kind="quiet">There is no graph of this name.</Note>}
      {runs !== undefined && runs.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls has to be reached by keyboard
        <section class="runs-frame" aria-label="Tasks and runs" tabIndex={0}>
          <table class="runs">
            <thead>
              <tr>
                <th scope="col">Task</th>
                {runs.map((run, at) => (
                  <th scope="col" key={chosen![at]}>
                    {run === undefined ? <Gone id={chosen![at]!} /> : <RunHead run={run} now={now} />}
                  </th>
                ))}
                {isPair && <th scope="col">Difference</th>}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, MAX_ROWS).map(({ id, tasks }) => (
                <tr key={id}>
                  <th scope="row">
                    <Id text={id} />
                  </th>
                  {tasks.map((task, at) => (
                    <td key={chosen![at]}>{task !== undefined && <Cell task={task} graphId={chosen![at]!} />}</td>
                  ))}
                  {isPair && <td class="difference">{differenceText(tasks)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {rows.length > MAX_ROWS && (
        <Note kind="quiet">
          Shown are the first {countText(MAX_ROWS)} of {countText(rows.length)} tasks.
        </Note>
      )}
    </div>
  )
}

function RunHead({ run, now }: { run: GraphDetails; now: number }) {
  const look = graphLook(run)
  return (
    <a
      href={hashOf({ at: 'graph', graphId: run.graph_id, view: 'graph', tab: 'overview' })}
      title={timeText(run.created_at)}
    >
      <StateIcon look={look} />
      <span>{timeOf(run, now)}</span>
      <span class="quiet">{agoText(run.created_at, now)}</span>
    </a>
  )
}

const Gone = ({ id }: { id: string }) => (
  <span class="quiet" title={id}>
    removed
  </span>
)

const Cell = ({ task, graphId }: { task: GraphTask; graphId: string }) => (
  <a
    href={hashOf({ at: 'graph', graphId, view: 'graph', taskId: task.id, tab: 'overview' })}
    title={task.error ?? LOOK_WORDS[lookOf(task)]}
  >
    <StateIcon look={lookOf(task)} />
    {task.duration_ms !== undefined && <span>{durationText(task.duration_ms)}</span>}
  </a>
)

/** The graphs, in the order of `ids`. Undefined members were removed. */
function useRuns(ids: readonly string[] | undefined, turn: number) {
  const key = ids?.join()
  const [state, setState] = useState<{ key: string; runs: readonly (GraphDetails | undefined)[] }>()
  const [fault, setFault] = useState<Fault>()
  useEffect(() => {
    if (ids === undefined || key === undefined) return
    const gone = new AbortController()
    const read = async (id: string) => {
      try {
        return await getJson<GraphDetails>(graphPath(id), gone.signal)
      } catch (error) {
        if (faultOf(error).status === 404) return undefined
        throw error
      }
    }
    Promise.all(ids.map(read))
      .then((runs) => {
        setFault(undefined)
        setState({ key, runs })
      })
      .catch((error) => {
        if (!gone.signal.aborted) setFault(faultOf(error))
      })
    return () => gone.abort()
  }, [key, turn])
  return { runs: state !== undefined && state.key === key ? state.runs : undefined, fault }
}
