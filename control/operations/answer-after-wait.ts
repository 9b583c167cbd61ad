/** Answers a submission once the tasks of the graph have ended, with their states. */
import { inRanges, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { Task } from '../graph/graph.ts'
import type { Keeper } from '../log/keeper.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { Submitted } from './submit.ts'
import { allEnded } from './wait.ts'

export interface AnswerAfterWaitParts {
  readonly store: TaskStore
  readonly keeper: Pick<Keeper, 'kept'>
  /** Fires when the service stops: callers that wait are answered then. */
  readonly stopping: AbortSignal
}

/** Waits until the tasks have ended or `until` fires, and adds their states to the answer to the submission. */
export async function answerAfterWait(
  { store, keeper, stopping }: AnswerAfterWaitParts,
  submitted: Submitted,
  until: AbortSignal,
): Promise<string> {
  const tasks = submitted.tasks()
  await allEnded(store, tasks, AbortSignal.any([until, stopping]))
  const states = await runCooperatively(statesOf(tasks))
  await keeper.kept('show')
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
