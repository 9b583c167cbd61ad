/** `cancel`: ends tasks; what depends on them is skipped. */
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import { CancelAnswer, CancelInput } from '../../../shared/contract/mcp-server.ts'
import { cancelTasks } from '../../operations/cancel.ts'
import { defineTool } from '../tool.ts'

export const cancelTool = defineTool({
  name: 'cancel',
  title: 'Cancel tasks',
  description:
    'Cancel tasks, or all tasks of a graph that have not ended. Running ones are ended and become cancelled a little later (wait sees it), what depends on them is skipped. Tasks that have ended stay as they are.',
  input: CancelInput,
  answer: CancelAnswer,
  isDestructive: true,
  async run(named, parts): Promise<CancelAnswer> {
    const all = await cancelTasks(parts, named)
    const omitted = all.length - MAX_SHOWN_TASKS
    return { tasks: all.slice(0, MAX_SHOWN_TASKS), ...(omitted > 0 && { tasks_omitted: omitted }) }
  },
})
