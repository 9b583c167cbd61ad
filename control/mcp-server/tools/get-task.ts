/** `get_task`: one task, with all members that are small enough. */
import { GetTaskAnswer, GetTaskInput } from '../../../shared/contract/mcp-server.ts'
import type { Task } from '../../graph/graph.ts'
import { taskRecord } from '../../graph/record.ts'
import { getTask } from '../../operations/get.ts'
import { defineTool } from '../tool.ts'
import { MAX_RESULTS_CHARACTERS, ResultRoom, viewWithResult } from '../view.ts'

/** Entries of the progress that are shown: the newest. */
const MAX_SHOWN_PROGRESS = 10

export const getTaskTool = defineTool({
  name: 'get_task',
  title: 'Look at a task',
  description:
    'Get one task: its state, parameters, result, error, times, progress and earlier attempts, as they are now. To wait for its end use wait; for a large result get_logs.',
  input: GetTaskInput,
  answer: GetTaskAnswer,
  isReadOnly: true,
  async run({ task_id }, parts) {
    return getTask(parts, task_id, wholeView)
  },
})

function wholeView(task: Task): GetTaskAnswer {
  const room = new ResultRoom(MAX_RESULTS_CHARACTERS)
  const view = viewWithResult(task, room)
  const { input, depends_on, annotations, progress, attempts, created_at, started_at, finished_at } = taskRecord(task)
  return {
    ...view,
    ...(input !== undefined && room.takes(input) && { input }),
    ...(depends_on !== undefined && { depends_on: [...depends_on] }),
    ...(annotations !== undefined && { annotations: { ...annotations } }),
    ...(progress !== undefined && { progress: progress.slice(-MAX_SHOWN_PROGRESS) }),
    ...(attempts !== undefined && { attempts: [...attempts] }),
    created_at,
    ...(started_at !== undefined && { started_at }),
    ...(finished_at !== undefined && { finished_at }),
  }
}
