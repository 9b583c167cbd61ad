/** Attempts that give their slots back for a while. tests/contract/scheduling.test.ts has the limit itself. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Attempt } from '../../../control/scheduler/attempt.ts'
import { MAX_STANDING_BY, Slots } from '../../../control/scheduler/slots.ts'

describe('attempts that stand by', () => {
  const attempt = (id: number) => {
    const stops: string[] = []
    const task = { id: `t${id}` }
    return { task, stops, stop: (reason: string) => void stops.push(reason) } as unknown as Attempt & {
      stops: string[]
    }
  }

  test('leave their slots to others, and get one again before those that have not started', async () => {
    const slots = new Slots(1)
    const [a, b] = [attempt(1), attempt(2)]
    slots.take(a)
    expect([slots.hasFree, slots.standBy(a.task), slots.hasFree]).toEqual([false, true, true])
    slots.take(b)
    let isBack = false
    const back = slots.resume(a.task).then(() => {
      isBack = true
    })
    await Promise.resolve()
    expect([isBack, slots.hasFree, slots.use.taken]).toEqual([false, false, 1])
    slots.free(b.task)
    await back
    expect([slots.use.taken, slots.hasFree]).toEqual([1, false])
    slots.free(a.task)
    expect(slots.use.taken).toBe(0)
  })

  test('are stopped with the service, and end like others', () => {
    const slots = new Slots(1)
    const [a, b] = [attempt(1), attempt(2)]
    slots.take(a)
    slots.standBy(a.task)
    slots.take(b)
    void slots.resume(a.task)
    slots.stopStandingBy('interrupted')
    expect([a.stops, b.stops]).toEqual([['interrupted'], []])
    slots.free(a.task)
    slots.free(b.task)
    expect([slots.use.taken, slots.hasFree]).toEqual([0, true])
  })

  test('are at most so many; the others keep their slots', () => {
    const slots = new Slots(MAX_STANDING_BY + 2)
    const attempts = Array.from({ length: MAX_STANDING_BY + 1 }, (_, i) => attempt(i))
    const results = attempts.map((each) => {
      slots.take(each)
      return slots.standBy(each.task)
    })
    expect([results.filter(Boolean).length, slots.use.taken]).toEqual([MAX_STANDING_BY, 1])
    expect(slots.standBy(attempt(0).task)).toBe(false) // one that has no slot
  })

  test('never lead to more slots in use than there are', async () => {
    const step = fc.tuple(fc.constantFrom('take', 'stand by', 'resume', 'free'), fc.nat(7))
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), async (count, steps) => {
        const slots = new Slots(count)
        const attempts = Array.from({ length: 8 }, (_, i) => attempt(i))
        const waits = new Map<Attempt, Promise<void>>()
        const live = new Set<Attempt>()
        for (const [kind, i] of steps) {
          const each = attempts[i]!
          if (kind === 'take' && slots.hasFree && !live.has(each)) {
            live.add(each)
            slots.take(each)
          } else if (!live.has(each)) continue
          else if (kind === 'stand by' && !waits.has(each)) slots.standBy(each.task)
          else if (kind === 'resume') waits.set(each, slots.resume(each.task))
          else if (kind === 'free') {
            slots.free(each.task)
            live.delete(each)
            waits.delete(each)
          }
          expect(slots.use.taken).toBeGreaterThanOrEqual(0)
          expect(slots.use.taken).toBeLessThanOrEqual(count)
        }
        for (const each of live) if (!waits.has(each)) slots.free(each.task)
        for (const [each, back] of waits) {
          await back // those that wait get their slots in turn
          slots.free(each.task)
        }
        expect([slots.use.taken, slots.hasFree]).toEqual([0, true])
      }),
    )
  })
})
