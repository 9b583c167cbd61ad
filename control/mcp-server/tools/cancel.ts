/** `cancel`: ends tasks; what depends on them is skipped. */
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import { CancelAnswer, CancelInput } from '../../../shared/contract/mcp-server.ts'
import { cancelTask } from '../../scheduler/cancel.ts'
import { namedTasks } from '../named-tasks.ts'
import { defineTool } from '../tool.ts'

export const cancelTool = defineTool({
  name: 'cancel',
  title: 'Cancel tasks',
  description:
    'Cancel tasks, or all tasks of a graph that have not ended. Running ones are ended and become cancelled a little later (wait sees it), what depends on them is skipped. Tasks that have ended stay as they are.',
  input: CancelInput,
  answer: CancelAnswer,
  isDestructive: true,
  async run(named, { intake, persistence }): Promise<CancelAnswer> {
    const { store, scheduler } = intake
    const tasks = await namedTasks(store, named)
    const statuses = new Map<string, CancelAnswer['tasks'][number]['status']>()
    const isWholeGraph = named.graph_id !== undefined
    const answers = tasks
      .filter((task) => !isWholeGraph || !task.isTerminal)
      .map((task) => cancelTask({ scheduler, persistence }, task))
    for (const entries of await Promise.all(answers)) {
      for (const { task_id, status } of entries) if (!statuses.has(task_id)) statuses.set(task_id, status)
    }
    const all = [...statuses].map(([id, status]) => ({ id, status }))
    const omitted = all.length - MAX_SHOWN_TASKS
    return { tasks: all.slice(0, MAX_SHOWN_TASKS), ...(omitted > 0 && { tasks_omitted: omitted }) }
  },
})
