/** `cancel`: cancels tasks. The tasks that depend on them are skipped. */

import { CancelAnswer } from '../../../shared/contract/mcp-answers.ts'
import { CancelInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import { cancelTasks } from '../../operations/cancel.ts'
import { defineTool } from '../tool.ts'

export const cancelTool = defineTool({
  name: 'cancel',
  title: 'Cancel tasks',
  description:
    'Cancel tasks, or all tasks of a graph that have not ended. A running task is killed and becomes cancelled a little later; wait reports that. Tasks that depend on a cancelled task are skipped. Tasks that have already ended do not change.',
  right: 'cancel_own',
  input: CancelInput,
  answer: CancelAnswer,
  isDestructive: true,
  async run(named, parts, { by }): Promise<CancelAnswer> {
    const all = await cancelTasks(parts, named, by)
    const omitted = all.length - MAX_SHOWN_TASKS
    return { tasks: all.slice(0, MAX_SHOWN_TASKS), ...(omitted > 0 && { tasks_omitted: omitted }) }
  },
})
