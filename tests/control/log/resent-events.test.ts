/**
 * What a client gets again over a takeover.
 * Source: docs/cluster.md.
 */
import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { blockOf, startOf } from '../../../control/log/number-blocks.ts'
import { owedAfter, type Positions } from '../../../control/log/positions.ts'
import { ResentEvents } from '../../../control/log/resent-events.ts'
import type { ServiceEvent } from '../../../shared/contract/events.ts'

const event = (seq: number, graph_id: string): ServiceEvent =>
  ({ event: 'graph_ended', seq, at: '', graph_id }) as unknown as ServiceEvent

const OWN = [2, 6]
const ADOPTED = [1, 4, 5]
const blocks = { own: OWN, adopted: new Set(ADOPTED) }

/** The numbers that a client gets before the own events that it lacks. */
function resentTo(positions: Positions, past: readonly ServiceEvent[]): number[] {
  const resent = new ResentEvents(owedAfter(positions, blocks)!, blocks)
  const numbers: number[] = []
  for (const { after, upTo } of resent.ranges())
    for (const each of past) if (each.seq > after && each.seq <= upTo && resent.takes(each)) numbers.push(each.seq)
  return numbers
}

const at = (block: number, seq: number) => startOf(block) + seq

test('events older than all that the client lacks of their graph do not come again', () => {
  const past = [event(at(2, 1), 'a'), event(at(4, 1), 'a'), event(at(4, 2), 'a'), event(at(6, 1), 'a')]
  const positions: Positions = new Map([
    [2, at(2, 1)],
    [4, at(4, 1)],
    [6, at(6, 1)],
  ])
  expect(resentTo(positions, past)).toEqual([at(4, 2), at(6, 1)])
})

test('events of a replica that is gone come again behind an older one of another', () => {
  const past = [event(at(4, 1), 'a'), event(at(5, 1), 'a'), event(at(5, 2), 'b'), event(at(6, 1), 'b')]
  const positions: Positions = new Map([
    [4, at(4, 0)],
    [5, at(5, 2)],
    [6, at(6, 1)],
  ])
  expect(resentTo(positions, past)).toEqual([at(4, 1), at(5, 1)])
})

test('a client gets all that it lacks, in order, and again only what is newer in the same graph', () => {
  const place = fc.tuple(fc.constantFrom(...OWN, ...ADOPTED), fc.integer({ min: 1, max: 6 }))
  const history = fc.uniqueArray(fc.tuple(place, fc.constantFrom('a', 'b', 'c')), {
    selector: ([[block, seq]]) => at(block, seq),
    maxLength: 20,
  })
  const known = fc.record({
    gone: fc.uniqueArray(place, { selector: ([block]) => block }),
    own: fc.integer({ min: 0, max: 7 }),
  })
  fc.assert(
    fc.property(history, known, (rows, { gone, own }) => {
      const past = rows.map(([[block, seq], graph]) => event(at(block, seq), graph)).sort((a, b) => a.seq - b.seq)
      const positions: Positions = new Map([...gone, [6, own] as const].map(([block, seq]) => [block, at(block, seq)]))
      const lacks = ({ seq }: ServiceEvent) =>
        ADOPTED.includes(blockOf(seq)) && seq > (positions.get(blockOf(seq)) ?? seq)
      const graphOf = (each: ServiceEvent) => (each as { graph_id: string }).graph_id
      const isNewer = (each: ServiceEvent) =>
        past.some((older) => lacks(older) && older.seq < each.seq && graphOf(older) === graphOf(each))
      const isOwed = (each: ServiceEvent) => blockOf(each.seq) === 6 && each.seq > at(6, own)
      const expected = past.filter((each) => !isOwed(each) && (lacks(each) || isNewer(each)))
      expect(resentTo(positions, past)).toEqual(expected.map(({ seq }) => seq))
    }),
  )
})
