/** Measures how long work takes. */

/** Milliseconds of the quickest of three runs: in one of them a busy machine may stand still. */
export const quickestMs = (work: () => unknown): number =>
  Math.min(
    ...Array.from({ length: 3 }, () => {
      const start = performance.now()
      work()
      return performance.now() - start
    }),
  )
