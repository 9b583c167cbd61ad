/** Tasks as the tools show them: small, with a pointer to omitted results. Pure. */

import { MAX_NAMED_APPROVALS } from '../../shared/contract/approval.ts'
import type { TaskView, WaitAnswer } from '../../shared/contract/mcp-answers.ts'
import { MAX_SHOWN_TASKS } from '../../shared/contract/mcp-limits.ts'
import { isLargeJson, ResultFile } from '../rules/result-file.ts'
import { isAskedApproval, shortMessage } from '../task/approval.ts'
import type { Task } from '../task/graph.ts'
import { failureTail, remedyOf } from '../task/root-cause.ts'

/** Characters of JSON that one result may have in an answer that shows several. */
export const MAX_RESULT_CHARACTERS = 8_000

/** Characters of all results of an answer together. Clients store longer answers in files. */
export const MAX_RESULTS_CHARACTERS = 32_000

/** The room that an answer has left for results, in characters. */
export class ResultRoom {
  #left = MAX_RESULTS_CHARACTERS
  readonly #each: number

  constructor(each = MAX_RESULT_CHARACTERS) {
    this.#each = each
  }

  /** Whether `result` fits. If it does, its room is taken. */
  takes(result: unknown): boolean {
    if (result instanceof ResultFile || isLargeJson(result, Math.min(this.#each, this.#left) + 1)) return false
    const { length } = JSON.stringify(result)
    if (length > this.#left) return false
    this.#left -= length
    return true
  }
}

/** Without its result. */
export function briefView(task: Task): TaskView {
  const { address, status, type, toolName, graph, attempt, rare, attemptStartedAt, finishedAt } = task
  const { error: errorText, failure } = rare
  const isTimed = attemptStartedAt !== undefined && finishedAt !== undefined
  return {
    id: address,
    status,
    tool: toolName ? `${type}/${toolName}` : type,
    graph_id: graph.id,
    ...(attempt > 0 && { attempt }),
    ...(errorText !== undefined && { error: errorText }),
    ...(failure !== undefined && { error_code: failure.code, ...remedyOf(task) }),
    ...(isTimed && { duration_ms: Math.max(0, finishedAt - attemptStartedAt) }),
  }
}

export function viewWithResult(task: Task, room: ResultRoom): TaskView {
  const view = briefView(task)
  const { result } = task
  if (result === undefined) return view
  if (room.takes(result)) return { ...view, result }
  const tail = failureTail(task, result)
  return {
    ...view,
    result_omitted: `call get_logs with {"task_id": ${JSON.stringify(task.address)}}`,
    ...(tail !== undefined && { tail }),
  }
}

/** The number of `tasks` in each state. */
export function statusCounts(tasks: Iterable<Task>): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of tasks) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/**
 * The state of `tasks` now. Tasks that did not succeed come first, as a model has to look at them. `approvals`: those that
 * alone let the tasks go on.
 */
export function waitAnswer(tasks: readonly Task[], approvals: readonly Task[] = []): WaitAnswer {
  const counts = statusCounts(tasks)
  const allTerminal = tasks.every(({ isTerminal }) => isTerminal)
  const shown = mostUrgent(tasks, MAX_SHOWN_TASKS)
  const room = new ResultRoom()
  return {
    all_terminal: allTerminal,
    counts,
    tasks: shown.map((task) => viewWithResult(task, room)),
    ...(tasks.length > shown.length && { tasks_omitted: tasks.length - shown.length }),
    ...(!allTerminal && { next: nextStep(tasks, approvals) }),
  }
}

const AGAIN = 'call wait again with the same ids: the tasks go on meanwhile'

function nextStep(tasks: readonly Task[], approvals: readonly Task[]): string {
  const [first] = approvals
  if (first !== undefined) {
    const named = approvals.slice(0, MAX_NAMED_APPROVALS).map(approvalWords)
    const more = approvals.length > named.length ? ` and ${approvals.length - named.length} more` : ''
    const call = `answer_approval with {"task_id": ${JSON.stringify(first.address)}, "approved": true or false, "who": the name of the user}`
    return `all that is left waits for approvals: ${named.join(', ')}${more}. Ask the user, then call ${call}, then wait again with the same ids`
  }
  const asking = tasks.find(isAskedApproval)
  if (asking === undefined) return AGAIN
  return `task ${asking.address} waits for an approval: get_task shows its message; when the user has decided, call answer_approval. Then ${AGAIN}`
}

function approvalWords(task: Task): string {
  const message = shortMessage(task)
  return message === undefined ? task.address : `${task.address} (${JSON.stringify(message)})`
}

const URGENCY: Readonly<Record<Task['status'], number>> = {
  failed: 0,
  cancelled: 1,
  cancelling: 2,
  running: 3,
  success: 4,
  pending: 5,
  skipped: 6,
}

/** The first `limit` tasks by urgency, then by position. Without sorting: there may be a million tasks. */
export function mostUrgent(tasks: readonly Task[], limit: number): Task[] {
  const byUrgency: Task[][] = Object.values(URGENCY).map(() => [])
  for (const task of tasks) {
    const alike = byUrgency[URGENCY[task.status]]!
    if (alike.length < limit) alike.push(task)
  }
  return byUrgency.flat().slice(0, limit)
}

/** The first `MAX_SHOWN_TASKS` ids, wave by wave. */
export function firstIds(waves: readonly (readonly string[])[]): string[][] {
  const shown: string[][] = []
  let left = MAX_SHOWN_TASKS
  for (const wave of waves) {
    if (left === 0) break
    shown.push(wave.slice(0, left))
    left -= shown.at(-1)!.length
  }
  return shown
}
