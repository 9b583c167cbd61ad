/** `list_schedules`: all schedules, or one with its graph and its last runs. */
import { ListSchedulesAnswer } from '../../../shared/contract/mcp-answers.ts'
import { ListSchedulesInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import { getSchedule, listSchedules } from '../../operations/show-schedules.ts'
import { defineTool } from '../tool.ts'

export const listSchedulesTool = defineTool({
  name: 'list_schedules',
  title: 'List schedules',
  description:
    'List the schedules, which submit graphs at certain times: when each is next due, what it missed, and why its last graph was refused. With name, it shows that one, with its graph, its next five due times and its last graphs.',
  right: 'read',
  isOfService: true,
  input: ListSchedulesInput,
  answer: ListSchedulesAnswer,
  isReadOnly: true,
  async run({ name, after }, parts): Promise<ListSchedulesAnswer> {
    if (name !== undefined) return { schedules: [await getSchedule(parts, name)] }
    const all = (await listSchedules(parts)).filter((schedule) => after === undefined || schedule.name > after)
    const shown = all.slice(0, MAX_SHOWN_TASKS)
    return { schedules: shown, ...(all.length > shown.length && { next_after: shown.at(-1)!.name }) }
  },
})
