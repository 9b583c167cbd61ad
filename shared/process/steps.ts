/**
 * Long computations without long pauses of the event loop.
 *
 * A rule over 100,000 tasks takes longer than a request should wait. Such a rule is a plain function over a range of
 * tasks; `inRanges` calls it for one range after another and yields in between. The rule itself stays pure and reads no
 * clock. A generator composes several rules. `runCooperatively` runs that generator on the event loop and lets I/O run
 * whenever its time slice is used up. `runSync` runs it to its end without a pause, where nothing waits, as in tests.
 */

/** A computation that yields where it may be interrupted, and returns `T`. */
export type Steps<T> = Generator<void, T, void>

/**
 * Steps between two looks at the clock. They take a few µs each, so a time slice overshoots by well under a
 * millisecond.
 */
export const STEPS_PER_YIELD = 256

/**
 * Whether to yield after step `i`, counted from 0. Fewer steps than `STEPS_PER_YIELD` never yield: most graphs are
 * small.
 */
export const isYieldDue = (i: number): boolean => i % STEPS_PER_YIELD === STEPS_PER_YIELD - 1

/**
 * Milliseconds of a time slice. Longer ones delay requests, shorter ones spend their time on turns of the event loop.
 */
export const SLICE_MS = 4

/**
 * Calls `work` for all of `count` items, one range at a time, and yields between ranges: `yield* inRanges(...)`. A
 * single range completes synchronously, without a generator: a small graph passes a dozen rules, and a generator for
 * each would cost 3 to 5 µs.
 */
export function inRanges(count: number, work: (from: number, to: number) => void): Iterable<void, void> {
  if (count > STEPS_PER_YIELD) return ranges(count, work)
  work(0, count)
  return NO_PAUSE
}

function* ranges(count: number, work: (from: number, to: number) => void): Steps<void> {
  for (let from = 0; from < count; from += STEPS_PER_YIELD) {
    work(from, Math.min(from + STEPS_PER_YIELD, count))
    yield
  }
}

const END: IteratorResult<void, void> = { done: true, value: undefined }
const NO_PAUSE: Iterable<void, void> = { [Symbol.iterator]: () => ({ next: () => END }) }

/** Milliseconds of a time slice during a start. Most starts are over within the first one, and so are not slowed by turns. */
export const START_SLICE_MS = 50

/** Runs `work` to its end without a pause. */
export function runSync<T>(work: Steps<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/**
 * Runs `work` in time slices of about `sliceMs` milliseconds. Work that ends within its first slice returns its result,
 * or throws, synchronously.
 */
export function runCooperatively<T>(work: Steps<T>, sliceMs = SLICE_MS): T | Promise<T> {
  const until = performance.now() + sliceMs
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    if (performance.now() >= until) return runRest(work, sliceMs)
  }
}

async function runRest<T>(work: Steps<T>, sliceMs: number): Promise<T> {
  for (;;) {
    await nextTurn()
    const until = performance.now() + sliceMs
    do {
      const step = work.next()
      if (step.done) return step.value
    } while (performance.now() < until)
  }
}

/** Resolves after the event loop has polled its sockets and timers once. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Calls `work` for each item, for at most `perTurn` of them in a turn of the event loop. For work that is paid for when the
 * turn ends, as writes to sockets are: a clock would not see it. Calls for the first items come synchronously.
 */
export async function eachByTurns<T>(items: Iterable<T>, perTurn: number, work: (item: T) => void): Promise<void> {
  let count = 0
  for (const item of items) {
    if (count > 0 && count % perTurn === 0) await nextTurn()
    work(item)
    count++
  }
}

/** Connections that are written to in a turn of the event loop: the writes take about 2 ms. */
export const WRITES_PER_TURN = 256
