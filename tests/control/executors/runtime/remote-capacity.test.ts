/** Goal: looks at the runtime service are shared, and an answer that is none makes it away rather than breaks the look. */
import { expect, setSystemTime, test } from 'bun:test'
import { RemoteCapacity } from '../../../../control/executors/runtime/remote-capacity.ts'
import { until } from '../../../support/until.ts'

const ANSWER = {
  ...{ runtime_id: 'r1', capacity: { task_slots: 8, memory_bytes: 1024 }, reserved: { task_slots: 2, pids: 4 } },
  ...{ accepted_waiting_tasks: 3, available: {}, active_reservations: [], tenants: [] },
}

const SEEN = {
  ...{ state: 'ready', runtimeId: 'r1', capacity: { task_slots: 8, memory_bytes: 1024 } },
  ...{ reserved: { task_slots: 2, pids: 4 }, queued: 3 },
}

test('all who look within a moment share one request', async () => {
  let calls = 0
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const capacity = new RemoteCapacity({
    resources: () => {
      calls++
      return promise
    },
  })
  const looks = Array.from({ length: 20 }, () => capacity.look())
  resolve(ANSWER)
  for (const look of looks) expect(await look).toEqual(SEEN as never)
  expect(await capacity.look()).toEqual(SEEN as never)
  expect(calls).toBe(1)
})

test.each([
  ['no object', []],
  ['no amounts', { ...ANSWER, capacity: { task_slots: 'many' } }],
  ['no reservations', { ...ANSWER, reserved: undefined }],
  ['no queue', { ...ANSWER, accepted_waiting_tasks: -1 }],
])('an answer with %s is no capacity', async (_, answer) => {
  const capacity = new RemoteCapacity({ resources: async () => answer })
  expect(await capacity.look()).toMatchObject({ state: 'away', reason: expect.stringContaining('answered with') })
})

test('a service that stays away is away since it was noticed first', async () => {
  const first = new Date('2026-01-01T00:00:00Z')
  setSystemTime(first)
  try {
    const capacity = new RemoteCapacity({ resources: () => Promise.reject(new Error('cannot connect')) })
    const away = {
      state: 'away',
      awaySince: first.getTime(),
      reason: 'cannot connect',
      fault: 'cannot connect',
    } as const
    expect(await capacity.look()).toEqual(away)
    setSystemTime(new Date('2026-01-01T01:00:00Z'))
    const before = capacity.look()
    const again = await until(
      () => ({ look: capacity.look() }),
      ({ look }) => look !== before,
    )
    expect(await again.look).toEqual(away)
  } finally {
    setSystemTime()
  }
})
