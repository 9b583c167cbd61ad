/** Answers of the tools in brief, as a call without `detail` gets them. Pure. */
import type { TaskView, WaitAnswer } from '../../shared/contract/mcp-answers.ts'
import { type BriefTask, briefTask, briefTasks, MAX_BRIEF_TASKS, type NextCalls } from '../../shared/text/brief.ts'

/** Characters of JSON of a task that went well: a model gets short outputs whole, without a further call. */
const MAX_CHARACTERS = 2_000

const naming = (tool: string, field: string) => (id: string) => `call ${tool} with {"${field}": ${JSON.stringify(id)}}`

export const TOOL_CALLS: NextCalls = {
  output: naming('get_logs', 'task_id'),
  wait: (id) => `call wait with {"task_ids": [${JSON.stringify(id)}]}`,
  approve: (id) => `ask the user, then call answer_approval with {"task_id": ${JSON.stringify(id)}}`,
}

export const GRAPH_CALLS: NextCalls = { ...TOOL_CALLS, wait: naming('wait', 'graph_id') }

export const briefTaskView = (task: TaskView): BriefTask =>
  briefTask(task, { calls: TOOL_CALLS, characters: MAX_CHARACTERS })

/** The answer of a tool that may have waited. The answer as a whole says what follows. */
export function briefWait<A extends Partial<WaitAnswer> & { readonly task_ids?: string[] }>(answer: A): A {
  const { tasks, tasks_omitted = 0, task_ids } = answer
  if (tasks === undefined) return answer
  const omitted = tasks_omitted + Math.max(0, tasks.length - MAX_BRIEF_TASKS)
  return {
    ...answer,
    ...(task_ids !== undefined && { task_ids: task_ids.slice(0, MAX_BRIEF_TASKS) }),
    tasks: briefTasks(tasks, { calls: TOOL_CALLS, characters: MAX_CHARACTERS }).map(({ next, ...task }) =>
      task.status === 'success' || task.status === 'failed' ? { ...task, ...(next !== undefined && { next }) } : task,
    ),
    ...(omitted > 0 && { tasks_omitted: omitted }),
  }
}
