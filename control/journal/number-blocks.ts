/** Size of a block of numbers of graphs and changes. No two replicas share a block. */
export const BLOCK = 10_000_000_000

/** The number of the block that `number` is in. The first block of a replica has the number of the replica. */
export const blockOf = (number: number): number => Math.floor(number / BLOCK)

export const startOf = (block: number): number => block * BLOCK

/** The blocks whose numbers a replica has given, or has taken over. */
export interface NumberBlocks {
  /** In rising order, which is also the order in which the replica used them. */
  readonly own: readonly number[]
  /** Blocks of replicas that are gone, of which it has adopted graphs. */
  readonly adopted: ReadonlySet<number>
}
