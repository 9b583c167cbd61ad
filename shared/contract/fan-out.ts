/** The type of a task that has `tasks` of its own: a group. Submissions may leave it out. */
export const GROUP_TYPE = 'group'

/** Elements of the longest list that `--max-fan-out` can allow. */
export const MOST_ELEMENTS = 100_000
