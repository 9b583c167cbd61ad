/** What schedules do, as callers do it. */
import { newTraceId } from '../../shared/logs/trace.ts'
import type { ScheduleFileVerbs } from '../schedules/schedule-files.ts'
import type { ScheduleVerbs } from '../schedules/schedules.ts'
import { cancelGraph } from './cancel.ts'
import { deleteSchedule } from './change-schedule.ts'
import { deleteGraph } from './delete.ts'
import { takeInGraph } from './intake.ts'
import type { OperationParts } from './parts.ts'
import { putSchedule } from './put-schedule.ts'

export const scheduleVerbs = (parts: OperationParts): ScheduleVerbs => ({
  submit: async (body, noteOf) => (await takeInGraph(parts, { body }, { traceId: newTraceId(), noteOf })).graph,
  cancelGraph: (id) => cancelGraph(parts, id, undefined),
  deleteGraph: (id) => deleteGraph(parts, id, newTraceId()),
})

/** What a file in `--schedules-dir` does. */
export const scheduleFileVerbs = (parts: OperationParts): ScheduleFileVerbs => ({
  async put(name, body, file) {
    await putSchedule(parts, name, body, { traceId: newTraceId(), signal: parts.stopping, file })
  },
  delete: (name, file) => deleteSchedule(parts, name, file),
})
