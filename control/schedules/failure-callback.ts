/** The callback of a schedule that failed. Pure. */
import type { ScheduleCallback } from '../../shared/contract/callbacks.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Delivery } from '../log/kept-callbacks.ts'
import type { ScheduleFailure } from '../rules/schedule.ts'

const EVENT = 'schedule_failed'

/** The same failure has the same id each time. */
export function failureCallback(
  schedule: string,
  { url, headers }: ScheduleCallback,
  { at, due, ...failure }: ScheduleFailure,
): Delivery {
  const body = { event: EVENT, schedule, ...failure, at: isoTime(at), ...(due !== undefined && { due: isoTime(due) }) }
  return {
    id: `${schedule}-${failure.reason}-${failure.graph_id ?? due}-${at}`,
    ...{ graphId: '', event: EVENT, url, body: JSON.stringify(body), since: at },
    ...(headers != null && { headers }),
  }
}
