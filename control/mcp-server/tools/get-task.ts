/** `get_task`: one task, with all fields that fit into the answer. */
import { GetTaskAnswer } from '../../../shared/contract/mcp-answers.ts'
import { GetTaskInput } from '../../../shared/contract/mcp-inputs.ts'
import type { Waiting } from '../../../shared/contract/waiting.ts'
import { getTask } from '../../operations/get.ts'
import { addressOf } from '../../operations/named-tasks.ts'
import type { Task } from '../../task/graph.ts'
import { taskRecord } from '../../task/record.ts'
import { briefTaskView } from '../brief.ts'
import { defineTool } from '../tool.ts'
import { MAX_RESULTS_CHARACTERS, ResultRoom, viewWithResult } from '../view.ts'

/** Maximum number of progress entries in the answer, the newest ones. */
const MAX_SHOWN_PROGRESS = 10

export const getTaskTool = defineTool({
  name: 'get_task',
  title: 'Look at a task',
  description:
    'Get the current state of one task with its output or error; with detail also parameters, whole result, times, progress and earlier attempts. To wait until the task ends, use wait. To read a large result, use get_logs.',
  right: 'read',
  input: GetTaskInput,
  answer: GetTaskAnswer,
  brief: briefTaskView,
  isReadOnly: true,
  async run({ task_id }, parts) {
    return getTask(parts, addressOf(parts.store, task_id), wholeView)
  },
})

function wholeView(task: Task, waiting: Waiting | undefined): GetTaskAnswer {
  const room = new ResultRoom(MAX_RESULTS_CHARACTERS)
  const view = viewWithResult(task, room)
  const { input, resolved_input, depends_on, annotations, ...more } = taskRecord(task)
  const { reused_from, progress, attempts, created_at, started_at, finished_at } = more
  return {
    ...view,
    ...(input !== undefined && room.takes(input) && { input }),
    ...(resolved_input !== undefined && room.takes(resolved_input) && { resolved_input }),
    ...(depends_on !== undefined && { depends_on: [...depends_on] }),
    ...(annotations !== undefined && { annotations: { ...annotations } }),
    ...(reused_from !== undefined && { reused_from }),
    ...(progress !== undefined && { progress: progress.slice(-MAX_SHOWN_PROGRESS) }),
    ...(attempts !== undefined && { attempts: [...attempts] }),
    ...(waiting !== undefined && { waiting }),
    created_at,
    ...(started_at !== undefined && { started_at }),
    ...(finished_at !== undefined && { finished_at }),
  }
}
