/**
 * Goal: a replica waits for one of an earlier version, and buries it only when that had a chance to renew its lease.
 * Method: a lease of 100 ms in a table of the test, whose database may be away.
 */
import { expect, test } from 'bun:test'
import { registered } from '../../../../control/log/postgres/registration.ts'
import type { OtherReplica } from '../../../../control/log/postgres/replica-rows.ts'

const LEASE_MS = 100

/** Asks `answer` for each try, with whether it may bury. */
async function askedUntilRegistered(
  answer: (tries: number, mayBury: boolean) => OtherReplica | undefined | Promise<undefined>,
) {
  const asked: { readonly at: number; readonly mayBury: boolean }[] = []
  const told: number[] = []
  const startedAt = performance.now()
  await registered({
    rows: {
      async register(mayBury) {
        asked.push({ at: performance.now() - startedAt, mayBury })
        return await answer(asked.length, mayBury)
      },
    },
    ...{ leaseMs: LEASE_MS, timeoutMs: 1_000, onFault: () => {}, signal: new AbortController().signal },
    onWaiting: ({ id }) => void told.push(id),
  })
  return { asked, told }
}

const active = (id: number): OtherReplica => ({ id, address: `http://${id}` })

test('without a replica of an earlier version, it registers at once', async () => {
  const { asked, told } = await askedUntilRegistered(() => undefined)
  expect([asked.map(({ mayBury }) => mayBury), told]).toEqual([[false], []])
})

test('an earlier one is buried only after a whole lease of looking', async () => {
  const { asked, told } = await askedUntilRegistered((_, mayBury) => (mayBury ? undefined : active(1)))
  expect(asked.at(-1)!.at).toBeGreaterThanOrEqual(LEASE_MS)
  expect(asked.length).toBeGreaterThan(3)
  expect(told).toEqual([1])
})

test('each earlier one is told once', async () => {
  const { told } = await askedUntilRegistered((tries) => (tries < 4 ? active(1) : tries < 7 ? active(2) : undefined))
  expect(told).toEqual([1, 2])
})

test('after an outage of the database, the holder has a whole lease again', async () => {
  let outageEndedAt = 0
  const { asked } = await askedUntilRegistered(async (tries, mayBury) => {
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
  const waiting = registered({
    rows: { register: async () => active(1) },
    ...{
      leaseMs: LEASE_MS,
      timeoutMs: 1_000,
      onFault: () => {},
      signal: controller.signal,
      onWaiting: () => controller.abort(new Error('stopped')),
    },
  })
  await expect(waiting).rejects.toThrow('stopped')
})
