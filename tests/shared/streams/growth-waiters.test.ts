/** Goal: everybody who waits is told once, in slices, and nothing of a wait that is over stays behind. */
import { expect, test } from 'bun:test'
import { nextTurn } from '../../../shared/process/steps.ts'
import { GrowthWaiters, grown } from '../../../shared/streams/growth-waiters.ts'

test('thousands are told over several turns of the event loop', async () => {
  const waiters = new GrowthWaiters()
  let told = 0
  for (let i = 0; i < 1_000; i++) waiters.add(() => told++)
  waiters.tell()
  expect(told).toBeGreaterThan(0)
  expect(told).toBeLessThan(1_000)
  while (told < 1_000) await nextTurn()
  waiters.tell()
  await nextTurn()
  expect(told).toBe(1_000)
})

test('a wait ends with the growth or with its signal, and leaves no listener', async () => {
  const waiters = new GrowthWaiters()
  const caller = new AbortController()
  const first = grown(waiters, caller.signal)
  waiters.tell()
  await first
  const second = grown(waiters, caller.signal)
  caller.abort()
  await second
  await grown(waiters, caller.signal)
})
