/** What schedules do, as callers do it. */
import { newTraceId } from '../../shared/logs/trace.ts'
import type { ScheduleVerbs } from '../schedules/schedules.ts'
import { cancelGraph } from './cancel.ts'
import { deleteGraph } from './delete.ts'
import { takeInGraph } from './intake.ts'
import type { OperationParts } from './parts.ts'

export const scheduleVerbs = (parts: OperationParts): ScheduleVerbs => ({
  submit: async (body, noteOf) => (await takeInGraph(parts, { body }, { traceId: newTraceId(), noteOf })).graph,
  cancelGraph: (id) => cancelGraph(parts, id, undefined),
  deleteGraph: (id) => deleteGraph(parts, id, newTraceId()),
})
