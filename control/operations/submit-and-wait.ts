/** Submits a graph and waits until its tasks have ended, in one request. */
import { inRanges, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { Keeper } from '../log/keeper.ts'
import { type Submission, type SubmitParts, type SubmittedGraph, submit } from './submit.ts'
import { allEnded } from './wait.ts'

/** Another replica has accepted the graph, with the same key. Only that one knows the states of its tasks. */
export class AcceptedElsewhere extends Error {
  constructor(
    readonly graphId: string,
    /** The answer without states. */
    readonly json: string,
  ) {
    super(`graph ${graphId} is not here`)
  }
}

export interface SubmitAndWaitParts extends SubmitParts {
  readonly keeper: SubmitParts['keeper'] & Pick<Keeper, 'kept' | 'others'>
  /** Fires when the service stops: callers that wait are answered then. */
  readonly stopping: AbortSignal
}

/**
 * Returns the answer to a submission as JSON. If `patience` returns a signal, waits until the tasks have ended or the
 * signal fires, and adds the states of the tasks. `patience` is called once the graph is on disk. A repeated submission
 * gets its first answer with the present states. Throws as `submit`, and `AcceptedElsewhere`.
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
  const { elsewhere } = submitted
  if (elsewhere !== undefined && parts.keeper.others !== undefined)
    throw new AcceptedElsewhere(elsewhere, submitted.json)
  const tasks = submitted.tasks()
  await allEnded(parts.store, tasks, AbortSignal.any([until, parts.stopping]))
  const states = await runCooperatively(statesOf(tasks))
  await parts.keeper.kept('show')
  return `${submitted.json.slice(0, -1)},${states}}`
}

/** Works in steps, because a graph may have a million tasks. */
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
