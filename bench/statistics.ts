/** The statistics that the bench needs. Pure. */

/** The middle value; of an even number of values the mean of the two in the middle. NaN of none. */
export function median(values: Iterable<number>): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The smallest value that `share` (0 to 1) of the values do not exceed. `sorted` rises. */
export const percentile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
