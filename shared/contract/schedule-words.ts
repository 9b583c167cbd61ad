/** Words and limits of schedules that the client knows as well, without schemas. */

/** What happens to a due time while a graph of the schedule runs. The first is the default. */
export const OVERLAPS = ['skip', 'queue', 'cancel', 'allow'] as const
export type Overlap = (typeof OVERLAPS)[number]

/** What happens to due times that passed while nobody looked. The first is the default. */
export const CATCH_UPS = ['none', 'last', 'all'] as const
export type CatchUp = (typeof CATCH_UPS)[number]

/** Milliseconds of the shortest `every`, and of the longest: a year. */
export const MIN_EVERY_MS = 1_000
export const MAX_EVERY_MS = 365 * 24 * 3_600_000

/** Milliseconds by which a graph may start later than its due time. */
export const MAX_JITTER_MS = 24 * 3_600_000

/** Ended graphs that `keep` may name, and runs that are kept. */
export const MAX_KEPT_RUNS = 100
