/** Adds a parameter to the statement of a turn. Returns its placeholder. */
export type AddParameter = (value: unknown) => string
