/**
 * The positions of a client in the events of all replicas: the number of the last event of each that it got. Pure.
 *
 * The numbers of one replica rise, and lie in blocks that no other replica has. So a position is the number of an event, or
 * the start of a block, and its block names the replica. The client has no event of the blocks above its highest position:
 * they began later. Of lower blocks without a position, it lacks nothing that it wants.
 */
import { BLOCK, blockOf, type NumberBlocks, startOf } from './number-blocks.ts'

/** By block. Undefined if nobody knows, as the replica did not answer. The block is then that of its number. */
export type Positions = ReadonlyMap<number, number | undefined>

/** Positions in one id of an event. A cluster has a few live replicas, and few that are just taken over. */
export const MAX_POSITIONS = 256

/** Positions as the id of an event. A replica that did not answer has its number alone. */
export const positionsText = (positions: Positions): string =>
  [...positions].map(([block, seq]) => seq ?? block).join('-')

/** Undefined if the text is no id of an event. */
export function positionsIn(text: string): Positions | undefined {
  if (text.length > MAX_POSITIONS * 17 || !/^[1-9]\d{0,15}(-[1-9]\d{0,15})*$/.test(text)) return undefined
  const numbers = text.split('-').map(Number)
  if (numbers.length > MAX_POSITIONS) return undefined
  return new Map(numbers.map((number) => (number < BLOCK ? [number, undefined] : [blockOf(number), number])))
}

/** Numbers of events: those after `after`, up to `upTo`. */
export interface OwedRange {
  readonly after: number
  readonly upTo: number
}

/** What a replica has to send to a client. */
export interface Owed {
  /** Events of replicas that are gone, which this one still has to send. */
  readonly inherited: readonly OwedRange[]
  /** Its own events after this number. */
  readonly after: number
  /** Whether the client has none of the replica's own events. */
  readonly isNew: boolean
}

/** Undefined if nobody knows what the client lacks. */
export function owedAfter(positions: Positions, { own, adopted }: NumberBlocks): Owed | undefined {
  const newest = Math.max(...positions.keys())
  const mine = [...positions].filter(([block]) => own.includes(block)).map(([, seq]) => seq)
  const isNew = own[0]! > newest
  if (mine.includes(undefined) || (mine.length === 0 && !isNew)) return undefined
  const inherited: OwedRange[] = []
  for (const block of [...adopted].filter((each) => !own.includes(each)).sort((a, b) => a - b)) {
    if (block > newest) inherited.push({ after: startOf(block), upTo: startOf(block + 1) - 1 })
    else if (positions.has(block)) {
      const after = positions.get(block)
      if (after === undefined) return undefined
      inherited.push({ after, upTo: startOf(block + 1) - 1 })
    }
  }
  const after = mine.length === 0 ? startOf(own[0]!) : Math.max(...(mine as number[]))
  return { inherited, after, isNew: mine.length === 0 }
}
