/**
 * Long computations without long pauses.
 *
 * A rule over 100,000 tasks takes longer than a reader should wait. Such a rule works on ranges of a few hundred and pauses
 * between them (`inRanges`); it stays pure and knows no clock. What puts rules together is a generator: `inSlices` runs it
 * on the event loop, giving way to I/O whenever a slice is used up. `atOnce` runs it to its end where nobody waits
 * (start-up, tests).
 */

/** A computation that pauses where it may be interrupted, and returns `T`. */
export type Slices<T> = Generator<void, T, void>

/** Steps between two looks at the clock: a few µs each, so that a slice overshoots by well under a millisecond. */
export const STEPS_PER_YIELD = 256

/** Whether to yield after step `i` (counted from 0). Never after the first ones: most graphs are small. */
export const isYieldDue = (i: number): boolean => i % STEPS_PER_YIELD === STEPS_PER_YIELD - 1

/** Milliseconds of one slice. Longer makes readers wait, shorter spends the time on turns of the loop. */
export const SLICE_MS = 4

/**
 * Does `work` for all of `count` things, a range at a time, and pauses between any two ranges: `yield* inRanges(...)`.
 * What is but one range is done when this returns. So a rule is a plain function over a range, and none of the dozen that
 * a small graph passes is a generator of its own (3 to 5 µs for each graph).
 */
export function inRanges(count: number, work: (from: number, to: number) => void): Iterable<void, void> {
  if (count > STEPS_PER_YIELD) return ranges(count, work)
  work(0, count)
  return NO_PAUSE
}

function* ranges(count: number, work: (from: number, to: number) => void): Slices<void> {
  for (let from = 0; from < count; from += STEPS_PER_YIELD) {
    work(from, Math.min(from + STEPS_PER_YIELD, count))
    yield
  }
}

const END: IteratorResult<void, void> = { done: true, value: undefined }
const NO_PAUSE: Iterable<void, void> = { [Symbol.iterator]: () => ({ next: () => END }) }

export function atOnce<T>(work: Slices<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/**
 * Runs `work`, never holding the event loop for much longer than `sliceMs`. What ends within its first slice has its
 * result, or throws, at once.
 */
export function inSlices<T>(work: Slices<T>, sliceMs = SLICE_MS): T | Promise<T> {
  const until = performance.now() + sliceMs
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    if (performance.now() >= until) return inFurtherSlices(work, sliceMs)
  }
}

async function inFurtherSlices<T>(work: Slices<T>, sliceMs: number): Promise<T> {
  for (;;) {
    await nextTurn()
    const until = performance.now() + sliceMs
    do {
      const step = work.next()
      if (step.done) return step.value
    } while (performance.now() < until)
  }
}

/** Resolves after the event loop has looked at its sockets and timers once. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
