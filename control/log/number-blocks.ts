/**
 * Blocks of numbers of graphs and changes (events have those of changes). No two replicas share a block, and the first block of a
 * replica has its number.
 *
 * The first 100,000 blocks are so large that no run uses one up. Later ones are small, so that there are eight billion of
 * them: a replica takes another one before one is full.
 */

/** Size of a large block. */
export const BLOCK = 10_000_000_000

export const LARGE_BLOCKS = 100_000
export const SMALL_BLOCK = 1_000_000

/** The first number of the first small block. */
export const FIRST_SMALL = LARGE_BLOCKS * BLOCK

/** The last block whose numbers are all exact in JavaScript. It is less than `BLOCK`, so it is no number of a change. */
export const MAX_BLOCK = LARGE_BLOCKS + Math.floor((Number.MAX_SAFE_INTEGER - FIRST_SMALL) / SMALL_BLOCK) - 1

/** The number of the block that `number` is in. */
export const blockOf = (number: number): number =>
  number < FIRST_SMALL ? Math.floor(number / BLOCK) : LARGE_BLOCKS + Math.floor((number - FIRST_SMALL) / SMALL_BLOCK)

export const startOf = (block: number): number =>
  block < LARGE_BLOCKS ? block * BLOCK : FIRST_SMALL + (block - LARGE_BLOCKS) * SMALL_BLOCK

/** Whether more than half of the block that `number` is in lies below it. Changes between two turns use up far less. */
export const isHalfUsed = (number: number): boolean => {
  const block = blockOf(number)
  return number > (startOf(block) + startOf(block + 1)) / 2
}

/** The blocks whose numbers a replica has given, or has taken over. */
export interface NumberBlocks {
  /** In rising order, which is also the order in which the replica used them. */
  readonly own: readonly number[]
  /** Blocks of replicas that are gone, of which it has adopted graphs. */
  readonly adopted: ReadonlySet<number>
}
