/** The user ids that sandboxes may have, both ends included. */
export interface UidRange {
  readonly first: number
  readonly last: number
}
