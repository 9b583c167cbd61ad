/** Submits a graph and waits for the end of its tasks: one request where there would be two. */
import { inRanges, runCooperatively, type Steps } from '../../shared/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { Persistence } from '../journal/persistence.ts'
import { type Submission, type SubmitParts, type SubmittedGraph, submit } from './submit.ts'
import { allEnded } from './wait.ts'

export interface SubmitAndWaitParts extends SubmitParts {
  readonly persistence: SubmitParts['persistence'] & Pick<Persistence, 'flush'>
  /** Fires when the service stops: callers that wait are answered then. */
  readonly stopping: AbortSignal
}

/**
 * The answer to a submission as JSON. Waits for the end of the tasks until the signal of `patience` fires, which is asked
 * for once the graph is on disk, and adds their states; undefined does not wait. A repeated submission gets its first
 * answer with the states of now. Throws as `submit` does.
 */
export async function submitAndWait(
  parts: SubmitAndWaitParts,
  graph: SubmittedGraph,
  submission: Submission,
  patience: () => AbortSignal | undefined,
): Promise<string> {
  const submitted = await submit(parts, graph, submission)
  const until = patience()
  if (until === undefined) return submitted.json
  const tasks = submitted.tasks()
  await allEnded(parts.store, tasks, AbortSignal.any([until, parts.stopping]))
  const states = await runCooperatively(statesOf(tasks))
  parts.persistence.flush()
  return `${submitted.json.slice(0, -1)},${states}}`
}

/** In steps, as a graph may have a million tasks. */
function* statesOf(tasks: readonly Task[]): Steps<string> {
  let states = ''
  let allTerminal = true
  yield* inRanges(tasks.length, (from, to) => {
    const some = tasks.slice(from, to).map(({ id, status }) => ({ id, status }))
    states += (from === 0 ? '' : ',') + JSON.stringify(some).slice(1, -1)
    for (let i = from; i < to; i++) allTerminal &&= tasks[i]!.isTerminal
  })
  return `"tasks":[${states}],"all_terminal":${allTerminal}`
}
