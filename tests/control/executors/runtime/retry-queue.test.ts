/**
 * Goal: an item is tried at whatever moment it is added.
 * Method: an item that is added so many microtasks after the round that emptied the queue.
 */
import { expect, test } from 'bun:test'
import { RetryQueue } from '../../../../control/executors/runtime/retry-queue.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { until } from '../../../support/until.ts'

const LATEST = 10

test.each(Array.from({ length: LATEST }, (_, microtasks) => microtasks))(
  'an item that is added %d microtasks after the last round is tried',
  async (microtasks) => {
    const tried: string[] = []
    const addLater = (left: number): void => {
      if (left > 0) queueMicrotask(() => addLater(left - 1))
      else queue.add({ id: 'late', since: Date.now() })
    }
    const queue = new RetryQueue<{ readonly id: string; readonly since: number }>([], {
      idOf: ({ id }) => id,
      attempt: async ({ id }) => {
        tried.push(id)
        return 'done'
      },
      afterRound: () => {
        if (tried.length === 1) addLater(microtasks)
      },
      onGivenUp: () => {},
      ...{ log: silentLog(), maxItems: 10, giveUpAfterMs: 60_000, parallel: 1, maxPauseMs: 100 },
    })
    queue.add({ id: 'first', since: Date.now() })
    await until(
      () => tried,
      (ids) => ids.length === 2,
    )
    expect(tried).toEqual(['first', 'late'])
  },
)

test('an item that finds the service away in each round keeps no other one from its turn', async () => {
  const left = new Set(['hangs', 'second', 'third'])
  const items = [...left].map((id) => ({ id, since: Date.now() }))
  const queue = new RetryQueue(items, {
    idOf: ({ id }) => id,
    attempt: async ({ id }) => {
      if (id === 'hangs' && left.size > 1) return 'away'
      left.delete(id)
      return 'done'
    },
    afterRound: () => {},
    onGivenUp: () => {},
    ...{ log: silentLog(), maxItems: 10, giveUpAfterMs: 60_000, parallel: 1, maxPauseMs: 100 },
  })
  queue.start()
  await until(
    () => left.size,
    (size) => size === 0,
  )
})
