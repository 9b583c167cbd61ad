/** Schedules without a data directory. */
import { expect, test } from 'bun:test'
import { Schedules } from '../../../control/schedules/schedules.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { silentLog } from '../../../shared/logs/log.ts'

test('with a database, schedules are refused by name', async () => {
  const schedules = new Schedules({ store: new TaskStore(), kept: undefined, maxSchedules: 1, log: silentLog() })
  await schedules.recover()
  expect(() => schedules.assertKept()).toThrow(
    'schedules: services with --database have none (use a service with a data directory alone)',
  )
  expect(schedules.all).toEqual([])
})
