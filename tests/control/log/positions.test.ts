/** How far clients have got in the events of several replicas. Goal: what a replica owes is never too little. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { JoinedPositions } from '../../../control/log/joined-positions.ts'
import { startOf } from '../../../control/log/number-blocks.ts'
import { MAX_POSITIONS, owedAfter, positionsIn, positionsText } from '../../../control/log/positions.ts'

const at = (block: number, n: number) => startOf(block) + n
const blocks = (own: number[], adopted: number[] = []) => ({ own, adopted: new Set(adopted) })

describe('the id of an event', () => {
  test('is read as it was written', () => {
    const block = fc.integer({ min: 1, max: 99_999 })
    const number = fc.option(fc.integer({ min: 0, max: 9_999_999_999 }), { nil: undefined })
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(block, number), { selector: ([b]) => b, minLength: 1 }), (given) => {
        const positions = new Map(given.map(([b, n]) => [b, n === undefined ? undefined : at(b, n)]))
        expect(positionsIn(positionsText(positions))).toEqual(positions)
      }),
    )
  })

  test('has few characters, and nothing else in it', () => {
    for (const text of ['', '0', '-', '1-', '01', '1--2', '1_2', ' 1', 'x', '12345678901234567'])
      expect(positionsIn(text)).toBeUndefined()
    const many = (count: number) =>
      positionsText(new Map(Array.from({ length: count }, (_, i) => [i + 1, at(i + 1, 1)])))
    expect(positionsIn(many(MAX_POSITIONS))?.size).toBe(MAX_POSITIONS)
    expect(positionsIn(many(MAX_POSITIONS + 1))).toBeUndefined()
    expect(new JoinedPositions(positionsIn(many(MAX_POSITIONS))).text).toBe(many(MAX_POSITIONS))
  })
})

test('a replica owes its own events after the position, and those of replicas that are gone', () => {
  const known = new Map([
    [1, at(1, 7)],
    [2, at(2, 5)],
    [4, at(4, 3)],
  ])
  expect(owedAfter(known, blocks([2]))).toEqual({ inherited: [], after: at(2, 5), isNew: false })
  expect(owedAfter(known, blocks([2, 6], [1]))).toEqual({
    inherited: [{ after: at(1, 7), upTo: at(2, -1) }],
    ...{ after: at(2, 5), isNew: false },
  })
  // Blocks above all of the client began after it: it has nothing of them.
  expect(owedAfter(known, blocks([7], [5, 3]))).toEqual({
    inherited: [{ after: at(5, 0), upTo: at(6, -1) }],
    ...{ after: at(7, 0), isNew: true },
  })
  // Nobody knows what the client has of replica 3, or of one that did not answer.
  expect(owedAfter(known, blocks([3]))).toBeUndefined()
  expect(owedAfter(new Map([[2, undefined]]), blocks([2]))).toBeUndefined()
  expect(owedAfter(new Map([...known, [1, undefined]]), blocks([2], [1]))).toBeUndefined()
})

describe('positions of a joined stream', () => {
  test('follow what each replica sends, also into its next block', () => {
    const joined = new JoinedPositions()
    joined.begun(1, [1])
    joined.begun(2, [2])
    joined.live(1, at(1, 4))
    joined.live(2, at(2, 9))
    joined.sent(1, at(1, 6))
    joined.sent(1, at(1, 5))
    expect(joined.text).toBe(`${at(1, 6)}-${at(2, 9)}`)
    joined.sent(1, at(3, 1))
    expect(joined.all).toEqual(
      new Map([
        [2, at(2, 9)],
        [3, at(3, 1)],
      ]),
    )
  })

  test('keep that of a replica that is gone until all have told its past', () => {
    const joined = new JoinedPositions(
      new Map([
        [1, at(1, 4)],
        [2, at(2, 9)],
      ]),
    )
    joined.expect([2, 3])
    joined.begun(2, [2])
    joined.begun(3, [3])
    joined.sent(2, at(1, 6))
    joined.live(2, at(2, 9))
    joined.sent(3, at(1, 5))
    expect(joined.all.get(1)).toBe(at(1, 4))
    joined.live(3, at(3, 0))
    joined.settle([])
    expect(joined.text).toBe(`${at(2, 9)}-${at(3, 0)}`)
  })

  test('name a replica that did not answer', () => {
    const joined = new JoinedPositions()
    joined.begun(1, [1])
    joined.live(1, at(1, 4))
    joined.silent(1)
    joined.silent(2)
    expect(joined.text).toBe(`${at(1, 4)}-2`)
  })
})
