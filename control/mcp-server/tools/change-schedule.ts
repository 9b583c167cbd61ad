/** `change_schedule`: pauses, resumes or deletes a schedule, or submits its graph now. */
import { ChangeScheduleAnswer } from '../../../shared/contract/mcp-answers.ts'
import { ChangeScheduleInput } from '../../../shared/contract/mcp-inputs.ts'
import { deleteSchedule, pauseSchedule, triggerSchedule } from '../../operations/change-schedule.ts'
import { defineTool } from '../tool.ts'

export const changeScheduleTool = defineTool({
  name: 'change_schedule',
  title: 'Pause, resume, trigger or delete a schedule',
  description:
    'Pause a schedule (nothing is due), resume it (what was due meanwhile is not made up for), trigger it (submits its graph now, also while it is paused) or delete it. Its graphs stay and go on.',
  right: 'operate',
  isOfService: true,
  input: ChangeScheduleInput,
  answer: ChangeScheduleAnswer,
  isDestructive: true,
  async run({ name, verb }, parts): Promise<ChangeScheduleAnswer> {
    if (verb === 'trigger') return { name, ...(await triggerSchedule(parts, name)) }
    if (verb === 'delete') {
      await deleteSchedule(parts, name)
      return { name }
    }
    const { next } = await pauseSchedule(parts, name, verb === 'pause')
    return { name, next: [...next] }
  },
})
