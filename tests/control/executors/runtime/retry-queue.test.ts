/**
 * Goal: an item is tried at whatever moment it is added.
 * Method: an item that is added so many microtasks after the round that emptied the queue.
 */
import { expect, test } from 'bun:test'
import { RetryQueue } from '../../../../control/executors/runtime/retry-queue.ts'
import { silentLog } from '../../../../shared/log.ts'
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
