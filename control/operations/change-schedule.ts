/** Pauses, resumes and deletes schedules, and submits the graph of one now. */
import type { Schedule as ScheduleAnswer } from '../../shared/contract/schedules.ts'
import type { OwningFile } from '../rules/schedule.ts'
import type { OperationParts } from './parts.ts'
import { knownSchedule, scheduleAnswer } from './show-schedules.ts'

/**
 * Pauses or resumes a schedule. What was due meanwhile is not missed: it was not due. Resolves once that is on disk. Throws
 * 404, 503, and 409 if its file says `paused`.
 */
export function pauseSchedule(parts: OperationParts, name: string, paused: boolean): Promise<ScheduleAnswer> {
  const { schedules, keeper } = parts
  return schedules.change(name, async () => {
    const { definition, times } = knownSchedule(parts, name)
    parts.scheduleFiles.assertMayPause(name, definition.file)
    keeper.assertWritable()
    const { paused: wasPaused = false, ...fields } = definition.fields
    const changed = { ...definition, fields: { ...fields, paused }, updated_at: schedules.now }
    const schedule = await schedules.put(name, changed, times, wasPaused === paused)
    const answer = scheduleAnswer(schedule)
    await keeper.kept('promise')
    return answer
  })
}

/**
 * Its graphs stay, and go on. Resolves once that is on disk. `byFile`: because its file is gone. Throws 404, 503, and 409 for
 * the schedule of a file.
 */
export function deleteSchedule(parts: OperationParts, name: string, byFile?: OwningFile): Promise<void> {
  const { schedules, keeper } = parts
  return schedules.change(name, async () => {
    const schedule = knownSchedule(parts, name)
    const { definition } = schedule
    if (byFile === undefined) parts.scheduleFiles.assertMayPut(name, definition, undefined)
    else if (definition.file?.name !== byFile.name) return // meanwhile it is from another one
    keeper.assertWritableWithReserve()
    await schedules.delete(schedule)
    await keeper.kept('promise')
  })
}

/**
 * Submits the graph of a schedule now, also while it is paused or one runs. Returns the id of the graph once it is on disk.
 * Throws 404, and as a submission.
 */
export function triggerSchedule(parts: OperationParts, name: string): Promise<{ graph_id: string }> {
  return parts.schedules.change(name, async () => {
    const { id } = await parts.schedules.trigger(knownSchedule(parts, name))
    return { graph_id: id }
  })
}
