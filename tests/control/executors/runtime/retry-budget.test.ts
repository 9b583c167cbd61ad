/** Goal: pauses end when they should and leave nothing behind. Method: short ones, in real time. */
import { expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import { RetryBudget } from '../../../../control/executors/runtime/retry-budget.ts'

test('is used up once the time is over', async () => {
  const startedAt = performance.now()
  const budget = new RetryBudget(60)
  let pauses = 0
  while (await budget.pause()) pauses++
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(60)
  expect(pauses).toBeGreaterThan(0)
})

test('has no pause where there is no time', async () => {
  expect(await new RetryBudget(0).pause()).toBe(false)
})

test('ends with the signal, in a pause and before one', async () => {
  const controller = new AbortController()
  const budget = new RetryBudget(60_000, controller.signal)
  const pause = budget.pause()
  controller.abort()
  expect(await pause).toBe(false)
  expect(await budget.pause()).toBe(false)
})

test('leaves nothing at the signal, however many pauses there are', async () => {
  const { signal } = new AbortController()
  const budget = new RetryBudget(60, signal)
  const left: number[] = []
  while (await budget.pause()) left.push(getEventListeners(signal, 'abort').length)
  expect(new Set(left)).toEqual(new Set([0]))
})
