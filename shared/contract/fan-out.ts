/** Elements of the longest list that `--max-fan-out` can allow. */
export const MOST_ELEMENTS = 100_000
