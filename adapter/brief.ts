/** Answers of subcommands for `-o brief`. The calls that follow are shell commands. Pure. */
import type { GraphDetails } from '../shared/contract/graphs.ts'
import type { SubmitResponse } from '../shared/contract/submission.ts'
import {
  type AnsweredGraph,
  type AnsweredTask,
  briefGraph,
  briefTask,
  briefTasks,
  MAX_BRIEF_TASKS,
  type NextCalls,
} from '../shared/text/brief.ts'
import { type Caller, ownCommand } from './own-command.ts'
import { commandLine } from './shell-words.ts'

const callsOf = (caller: Caller): NextCalls => {
  const naming = (verb: string) => (id: string) => ownCommand(commandLine(verb, id), caller)
  return { output: naming('logs'), wait: naming('wait'), approve: naming('approve') }
}

export const taskInBrief = (task: AnsweredTask, id: string, caller: Caller) =>
  briefTask(task, { calls: callsOf(caller), id })

/** What `wait` has seen of an argument. */
export type Named =
  | { readonly kind: 'task'; readonly id: string; readonly task: AnsweredTask }
  | { readonly kind: 'graph'; readonly graph: GraphDetails }

export function waitInBrief(found: readonly Named[], caller: Caller) {
  const calls = callsOf(caller)
  const tasks = found.flatMap((one) => (one.kind === 'task' ? [{ ...one.task, id: one.id }] : []))
  const graphs = found.flatMap((one) => (one.kind === 'graph' ? [briefGraph(one.graph, calls)] : []))
  const omitted = tasks.length - MAX_BRIEF_TASKS
  return {
    ...(tasks.length > 0 && { tasks: briefTasks(tasks, { calls }) }),
    ...(omitted > 0 && { tasks_omitted: omitted }),
    ...(graphs.length > 0 && { graphs }),
  }
}

/** The answer to a submission. Of an action it has no graph. */
export function submissionInBrief(data: object, caller: Caller) {
  const { accepted, graph_id, task_ids = [] } = data as Partial<SubmitResponse>
  const named = graph_id ?? task_ids[0]
  return {
    ...(graph_id !== undefined && { graph_id }),
    accepted,
    task_ids: task_ids.slice(0, MAX_BRIEF_TASKS),
    ...(named !== undefined && { next: callsOf(caller).wait(named) }),
  }
}

export const graphInBrief = (graph: AnsweredGraph, caller: Caller) => briefGraph(graph, callsOf(caller))
