/** Goal: long computations give way to others and lose nothing. Method: generators that spin, watched from outside. */
import { describe, expect, test } from 'bun:test'
import {
  inRanges,
  nextTurn,
  runCooperatively,
  runSync,
  STEPS_PER_YIELD,
  type Steps,
} from '../../../shared/process/steps.ts'

function* sumTo(n: number): Steps<number> {
  let sum = 0
  for (let i = 1; i <= n; i++) {
    sum += i
    yield
  }
  return sum
}

/** Holds the event loop for `ms` between any two of its pauses, until `isOver`. */
function* spin(ms: number, isOver: () => boolean): Steps<void> {
  while (!isOver()) {
    const until = performance.now() + ms
    while (performance.now() < until);
    yield
  }
}

// biome-ignore lint/correctness/useYield: it breaks before it could
function* broken(): Steps<never> {
  throw new Error('broken inside')
}

function* brokenLater(): Steps<never> {
  yield
  throw new Error('broken later')
}

describe('work in ranges', () => {
  test.each([0, 1, 255, 256, 257, 511, 512, 10_000])('covers all of %i things, once and in order', (count) => {
    const seen: number[] = []
    let pauses = 0
    for (const _ of inRanges(count, (from, to) =>
      seen.push(...Array.from({ length: to - from }, (_, i) => from + i)),
    )) {
      pauses++
    }
    expect(seen).toEqual(Array.from({ length: count }, (_, i) => i))
    expect(pauses).toBe(count <= STEPS_PER_YIELD ? 0 : Math.ceil(count / STEPS_PER_YIELD))
  })

  test('that fails, fails whoever asked for it', () => {
    const fail = () => {
      throw new Error('broken inside')
    }
    expect(() => inRanges(1, fail)).toThrow('broken inside')
    expect(() => [...inRanges(1_000, fail)]).toThrow('broken inside')
  })
})

describe('a computation in slices', () => {
  test('has the same result synchronously and in slices of any length', async () => {
    expect(runSync(sumTo(1_000))).toBe(500_500)
    expect(await runCooperatively(sumTo(1_000))).toBe(500_500)
    expect(await runCooperatively(sumTo(1_000), 0)).toBe(500_500)
  })

  test('lets the event loop turn when its slice is used up', async () => {
    let turns = 0
    void nextTurn().then(() => turns++)
    setTimeout(() => turns++, 0)
    await runCooperatively(
      spin(1, () => turns === 2),
      1,
    )
    expect(turns).toBe(2)
  })

  test('keeps the event loop until its slice is used up', async () => {
    let hasTurned = false
    void nextTurn().then(() => {
      hasTurned = true
    })
    await runCooperatively(sumTo(100), 60_000)
    expect(hasTurned).toBe(false)
  })

  test('fails as its generator fails, at once or later', async () => {
    expect(() => runSync(broken())).toThrow('broken inside')
    expect(() => runCooperatively(broken())).toThrow('broken inside')
    await expect(runCooperatively(brokenLater(), 0)).rejects.toThrow('broken later')
  })

  test('gives its result at once when it ends within its first slice', async () => {
    expect(runCooperatively(sumTo(100), 60_000)).toBe(5_050)
    expect(runCooperatively(sumTo(100), 0)).toBeInstanceOf(Promise)
  })
})
