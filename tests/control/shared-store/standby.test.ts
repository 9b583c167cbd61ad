/**
 * Goal: a standby takes the lease when it is free, and buries its holder only when that had a chance to renew it.
 * Method: a lease of 100 ms in a table of the test, whose database may be away.
 */
import { expect, test } from 'bun:test'
import type { ActiveReplica } from '../../../control/shared-store/shared-rows.ts'
import { becomeActive } from '../../../control/shared-store/standby.ts'

const LEASE_MS = 100

/** Asks `answer` for each try, with whether it may bury. */
async function askedUntilActive(
  answer: (tries: number, mayBury: boolean) => ActiveReplica | undefined | Promise<undefined>,
) {
  const asked: { readonly at: number; readonly mayBury: boolean }[] = []
  const told: number[] = []
  const startedAt = performance.now()
  await becomeActive({
    rows: {
      async activate(_, mayBury) {
        asked.push({ at: performance.now() - startedAt, mayBury })
        return await answer(asked.length, mayBury)
      },
    },
    ...{ address: 'http://x', leaseMs: LEASE_MS, signal: new AbortController().signal },
    onWaiting: ({ id }) => void told.push(id),
  })
  return { asked, told }
}

const active = (id: number): ActiveReplica => ({ id, address: `http://${id}` })

test('a free lease is taken at once, without a burial', async () => {
  const { asked, told } = await askedUntilActive(() => undefined)
  expect([asked.map(({ mayBury }) => mayBury), told]).toEqual([[false], []])
})

test('a holder is buried only after a whole lease of looking', async () => {
  const { asked, told } = await askedUntilActive((_, mayBury) => (mayBury ? undefined : active(1)))
  expect(asked.at(-1)!.at).toBeGreaterThanOrEqual(LEASE_MS)
  expect(asked.length).toBeGreaterThan(3)
  expect(told).toEqual([1])
})

test('each holder is told once', async () => {
  const { told } = await askedUntilActive((tries) => (tries < 4 ? active(1) : tries < 7 ? active(2) : undefined))
  expect(told).toEqual([1, 2])
})

test('after an outage of the database, the holder has a whole lease again', async () => {
  let outageEndedAt = 0
  const { asked } = await askedUntilActive(async (tries, mayBury) => {
    if (mayBury) return undefined
    if (tries === 5) {
      await Bun.sleep(2 * LEASE_MS) // it answers late: it was away
      outageEndedAt = performance.now()
    }
    return active(1) as never
  })
  expect(performance.now() - outageEndedAt).toBeGreaterThanOrEqual(LEASE_MS)
  expect(asked.slice(0, -1).some(({ mayBury }) => mayBury)).toBe(false)
})

test('a stop ends the wait', async () => {
  const controller = new AbortController()
  const waiting = becomeActive({
    rows: { activate: async () => active(1) },
    ...{
      address: 'http://x',
      leaseMs: LEASE_MS,
      signal: controller.signal,
      onWaiting: () => controller.abort(new Error('stopped')),
    },
  })
  await expect(waiting).rejects.toThrow('stopped')
})
