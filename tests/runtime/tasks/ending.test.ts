/** Goal: a task that ran into its wall time has the event of that once, whoever was first to know. Method: a table. */
import { describe, expect, test } from 'bun:test'
import { NO_EVENTS, readEvents, withEvents } from '../../../runtime/store/events.ts'
import type { TaskRow } from '../../../runtime/store/tasks.ts'
import { type Ending, endChange, timeoutEvents } from '../../../runtime/tasks/ending.ts'

const FINISHED_AT = 5_000
const row = { started_at: 1_000 } as TaskRow
const reservation = { task_slots: 1 }

describe('timeout_triggered', () => {
  const accepted = withEvents(NO_EVENTS, [{ event_type: 'accepted', message: '' }], 1)
  const heard = withEvents(accepted, timeoutEvents(accepted), 4_000)

  test.each<[string, string, Partial<Ending>, number[]]>([
    ['comes with the end when nothing was heard of it', accepted, { isTimeout: true }, [FINISHED_AT]],
    ['is not added when it was heard before', heard, { isTimeout: true }, [4_000]],
    ['stays when the end is of another kind', heard, { status: 'cancelled' }, [4_000]],
    ['is not there when there was none', accepted, {}, []],
  ])('%s', (_, events, how, times) => {
    const change = endChange({ row, events, reservation }, { status: 'failed', finishedAt: FINISHED_AT, ...how })
    const all = readEvents(withEvents(events, change.events, FINISHED_AT))
    const timeouts = all.filter(({ event_type }) => event_type === 'timeout_triggered')
    expect(timeouts.map(({ timestamp }) => timestamp)).toEqual(times)
    expect(all.at(-1)!.event_type).toBe(how.status ?? 'failed')
  })

  test('is heard once, though it be said twice', () => expect(timeoutEvents(heard)).toEqual([]))
})
