/**
 * Answers about tasks and graphs for models, which pay for every character: the state, the output or its end, what went
 * wrong with its remedy, and the next call. Of `taskmill -o brief`, and of the MCP tools without `detail`. Pure.
 */
import type { GraphDetails, GraphTask, RootCause } from '../contract/graphs.ts'
import { isTerminal, type TaskStatus } from '../contract/task-status.ts'
import type { Waiting } from '../contract/waiting.ts'
import { isObject } from './json.ts'
import { resultTexts } from './result-texts.ts'

/** Characters of JSON of a task that went well, where an answer is about few tasks. */
export const MAX_BRIEF_CHARACTERS = 360

/** Tasks in a brief answer. The others are counted. */
export const MAX_BRIEF_TASKS = 20

/** A failure has so many times the room of a success. */
const FAILURE_ROOM = 3

/** Characters of an error, a remedy, and what a task waits for. */
const MAX_WORDS = 500

/** A task in any answer: a record, a task of a graph or of an MCP tool. */
export interface AnsweredTask {
  readonly id: string
  readonly status: TaskStatus
  readonly graph_id?: string
  readonly result?: unknown
  /** Set in place of a `result` that is too large. */
  readonly result_omitted?: string
  /** The last lines of output that the answer does not have otherwise. */
  readonly tail?: string
  readonly error?: string
  readonly error_code?: string
  readonly remedy?: string
  readonly attempts?: readonly unknown[]
  readonly runtime?: { readonly error?: { readonly code?: string; readonly details?: unknown } | undefined }
  readonly waiting?: unknown
}

export interface BriefTask {
  readonly id: string
  readonly status: TaskStatus
  /** Text, or a small result as it is. A text that lost its beginning starts with "…". */
  readonly output?: unknown
  readonly error?: string
  readonly error_code?: string
  readonly remedy?: string
  readonly waiting?: string
  readonly next?: string
}

/** How the reader calls what it needs next. */
export interface NextCalls {
  output(id: string): string
  wait(id: string): string
  approve(id: string): string
}

/** `id`: how calls name the task. `characters`: of JSON, if the task goes well. */
export function briefTask(
  task: AnsweredTask,
  { calls, id = task.id, characters = MAX_BRIEF_CHARACTERS }: BriefOptions & { readonly id?: string },
): BriefTask {
  const { status, error, waiting, runtime } = task
  const code = task.error_code ?? runtime?.error?.code
  const details = runtime?.error?.details
  const remedy = task.remedy ?? (isObject(details) && typeof details.remedy === 'string' ? details.remedy : undefined)
  const hasFailed = status === 'failed'
  const brief = {
    ...{ id, status },
    ...(error !== undefined && { error: beginning(error) }),
    ...(code !== undefined && { error_code: code }),
    ...(remedy !== undefined && { remedy: beginning(remedy) }),
    ...(isObject(waiting) && { waiting: waitingWords(waiting as Waiting) }),
  }
  if (!isTerminal(status)) {
    return { ...brief, next: isObject(waiting) && waiting.reason === 'approval' ? calls.approve(id) : calls.wait(id) }
  }
  const output = outputOf(task, hasFailed)
  if (output === undefined) return hasFailed ? { ...brief, next: calls.output(id) } : brief
  const next = calls.output(id)
  const whole = hasFailed ? { ...brief, output, next } : { ...brief, output }
  const room = hasFailed ? characters * FAILURE_ROOM : characters
  if (task.result_omitted === undefined && JSON.stringify(whole).length <= room) return whole
  const text = typeof output === 'string' ? output : JSON.stringify(output)
  const left = room - JSON.stringify({ ...brief, output: '', next }).length
  return { ...brief, ...(left > 1 && { output: ending(text, left) }), next }
}

export interface BriefOptions {
  readonly calls: NextCalls
  readonly characters?: number
}

/** A task in a list. */
export const briefStatus = ({ id, status, error }: Pick<AnsweredTask, 'id' | 'status' | 'error'>) => ({
  ...{ id, status },
  ...(error !== undefined && { error: beginning(error) }),
})

/** The first tasks in brief; they share the room of a few. */
export function briefTasks<T extends AnsweredTask>(
  tasks: readonly T[],
  { calls, characters = MAX_BRIEF_CHARACTERS }: BriefOptions,
  idOf: (task: T) => string = ({ id }) => id,
): BriefTask[] {
  const shown = tasks.slice(0, MAX_BRIEF_TASKS)
  const share = Math.floor((characters * 3) / Math.max(3, shown.length))
  return shown.map((task) => briefTask(task, { calls, characters: share, id: idOf(task) }))
}

/** A graph in any answer. */
export type AnsweredGraph = Partial<Omit<GraphDetails, 'tasks'>> &
  Pick<GraphDetails, 'graph_id' | 'state'> & {
    readonly tasks?: readonly (AnsweredGraphTask & { readonly id: string })[]
  }

export const briefSummary = ({ graph_id, name, state, counts = {} }: AnsweredGraph) => ({
  ...{ graph_id, ...(name !== undefined && { name }), state, counts },
})
export type BriefSummary = ReturnType<typeof briefSummary>

/** A graph: the counts, the tasks that have not succeeded, and what failed first. */
export function briefGraph(graph: AnsweredGraph, calls: NextCalls) {
  const { graph_id, state, tasks = [], duration_ms, root_cause: cause } = graph
  const address = (id: string) => `${graph_id}/${id}`
  const open = tasks.filter(({ id, status }) => status !== 'success' && id !== cause?.task_id)
  const asking = open.find(({ waiting }) => waiting?.reason === 'approval')
  const told = cause?.task_id ?? tasks.findLast(({ status }) => status === 'success')?.id
  const next =
    asking !== undefined
      ? calls.approve(address(asking.id))
      : state === 'running'
        ? calls.wait(graph_id)
        : told && calls.output(address(told))
  return {
    ...briefSummary({ ...graph, counts: graph.counts ?? countsOf(tasks) }),
    ...(duration_ms !== undefined && { duration_ms }),
    ...(cause !== undefined && { root_cause: briefCause(cause) }),
    tasks: open.slice(0, MAX_BRIEF_TASKS).map((task) => briefGraphTask(task, address(task.id))),
    ...(open.length > MAX_BRIEF_TASKS && { tasks_omitted: open.length - MAX_BRIEF_TASKS }),
    ...(next !== undefined && { next }),
  }
}

const briefCause = ({ task_id, error, code, tail, remedy, skipped }: Omit<RootCause, 'try_next'>) => ({
  ...{ task_id, error: beginning(error) },
  ...(code !== undefined && { code }),
  ...(tail !== undefined && { tail: ending(tail, MAX_BRIEF_CHARACTERS * FAILURE_ROOM) }),
  ...(remedy !== undefined && { remedy: beginning(remedy) }),
  skipped,
})

const briefGraphTask = ({ status, error, waiting }: AnsweredGraphTask, id: string) => ({
  ...{ id, status },
  ...(error !== undefined && { error: beginning(error) }),
  ...(waiting !== undefined && { waiting: waitingWords(waiting) }),
})
type AnsweredGraphTask = Pick<GraphTask, 'status' | 'error' | 'waiting'>
export type BriefGraphTask = ReturnType<typeof briefGraphTask>

function countsOf(tasks: readonly { readonly status: string }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of tasks) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** The text of a result for people, a result without one as it is; undefined if there is nothing to say. */
function outputOf({ result, tail, attempts }: AnsweredTask, hasFailed: boolean): unknown {
  const last = attempts?.at(-1)
  const known = tail ?? (hasFailed && isObject(last) ? last.tail : undefined)
  if (known !== undefined) return known
  if (result === undefined || result === null) return undefined
  const texts = resultTexts(result)
  if (texts.size === 0) return isObject(result) && Object.keys(result).length === 0 ? undefined : result
  const text = [...(hasFailed ? [texts.get('stderr')] : []), ...texts.values()].find((one) => one?.trim())
  return text?.trimEnd()
}

const waitingWords = ({ reason, tasks, group, graphs, until, detail }: Waiting): string =>
  beginning([reason, tasks?.join(', '), group, graphs?.join(', '), detail, until].filter(Boolean).join(': '))

const beginning = (text: string): string => (text.length <= MAX_WORDS ? text : `${text.slice(0, MAX_WORDS - 1)}…`)

/** The end of `text` that has at most `room` characters as JSON, without its quotes. */
function ending(text: string, room: number): string {
  let end = text.slice(-room)
  let excess = JSON.stringify(`…${end}`).length - 2 - room
  if (end.length === text.length && excess <= 1) return text
  for (; excess > 0 && end !== ''; excess = JSON.stringify(`…${end}`).length - 2 - room) {
    end = end.slice(Math.ceil(excess / 6)) // an escaped character has at most six
  }
  return `…${end}`
}
