/** `put_schedule`: creates or replaces a schedule, as PUT /schedules/{name} does. */
import { PutScheduleAnswer } from '../../../shared/contract/mcp-answers.ts'
import { PutScheduleInput } from '../../../shared/contract/mcp-inputs.ts'
import { putSchedule } from '../../operations/put-schedule.ts'
import { defineTool } from '../tool.ts'

export const putScheduleTool = defineTool({
  name: 'put_schedule',
  title: 'Create or replace a schedule',
  description:
    'Create or replace a schedule, which submits a graph at certain times: give one of cron, every and at. The graph is checked now. A schedule that is put again with the same times goes on where it was.',
  right: 'operate',
  isOfService: true,
  input: PutScheduleInput,
  answer: PutScheduleAnswer,
  isDestructive: true,
  async run({ name, dry_run: isDryRun = false, ...given }, parts, { traceId, signal }): Promise<PutScheduleAnswer> {
    const body = new TextEncoder().encode(JSON.stringify(given))
    const { schedule, isNew } = await putSchedule(parts, name, body, { traceId, signal, isDryRun })
    const { next, warnings } = schedule
    return { name, created: isNew && !isDryRun, next: [...next], ...(warnings && { warnings: [...warnings] }) }
  },
})
