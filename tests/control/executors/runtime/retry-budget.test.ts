/** Goal: pauses end when they should and leave nothing behind. Method: short ones, in real time. */
import { expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import { Patience } from '../../../../control/executors/runtime/patience.ts'

test('is used up once the time is over', async () => {
  const startedAt = performance.now()
  const patience = new Patience(60)
  let pauses = 0
  while (await patience.pause()) pauses++
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(60)
  expect(pauses).toBeGreaterThan(0)
})

test('has no pause where there is no time', async () => {
  expect(await new Patience(0).pause()).toBe(false)
})

test('ends with the signal, in a pause and before one', async () => {
  const controller = new AbortController()
  const patience = new Patience(60_000, controller.signal)
  const pause = patience.pause()
  controller.abort()
  expect(await pause).toBe(false)
  expect(await patience.pause()).toBe(false)
})

test('leaves nothing at the signal, however many pauses there are', async () => {
  const { signal } = new AbortController()
  const patience = new Patience(60, signal)
  const left: number[] = []
  while (await patience.pause()) left.push(getEventListeners(signal, 'abort').length)
  expect(new Set(left)).toEqual(new Set([0]))
})
