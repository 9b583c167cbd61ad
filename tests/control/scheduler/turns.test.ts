/** Goal: turns do all there is to do, leave time for I/O, never nest, and end with an error. */
import { expect, test } from 'bun:test'
import { Turns } from '../../../control/scheduler/turns.ts'
import { nextTurn } from '../../../shared/process/steps.ts'

const unexpected = (error: unknown) => {
  throw error
}

test('a turn takes steps until one has nothing to do', async () => {
  let left = 100
  const turns = new Turns(() => left-- > 0, unexpected)
  turns.take()
  while (left > -1) await nextTurn() // a busy machine may have used up the time of the first one
  await nextTurn()
  expect(left).toBe(-1)
})

test('a long turn goes on after the event loop had a turn', async () => {
  let left = 40
  const turns = new Turns(() => {
    Bun.sleepSync(1)
    return left-- > 0
  }, unexpected)
  turns.take()
  expect(left).toBeGreaterThan(0)
  while (left > 0) await nextTurn()
})

test('a turn that is asked for within a step is the one under way', async () => {
  let depth = 0
  let deepest = 0
  let left = 3
  const turns: Turns = new Turns(() => {
    depth++
    deepest = Math.max(deepest, depth)
    turns.take()
    depth--
    return left-- > 0
  }, unexpected)
  turns.take()
  while (left > -1) await nextTurn()
  expect({ deepest, left }).toEqual({ deepest: 1, left: -1 })
})

test('an error ends the turn, and a stop all others', () => {
  const errors: unknown[] = []
  let steps = 0
  const turns: Turns = new Turns(
    () => {
      steps++
      throw new Error('broken')
    },
    (error) => errors.push(error),
  )
  turns.take()
  turns.stop()
  turns.take()
  expect(steps).toBe(1)
  expect(errors).toEqual([new Error('broken')])
})
