/** Goal: the map by id behaves as a `Map`, however it grows and shrinks. Method: random operations on both. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { IdMap } from '../../../control/task/id-map.ts'

interface Named {
  readonly id: string
}

test('it holds what a Map holds after the same operations', () => {
  const id = fc.oneof(fc.integer({ min: 0, max: 3_000 }).map(String), fc.string({ unit: 'binary', maxLength: 4 }))
  const operation = fc.record({ id, kind: fc.constantFrom('put', 'put', 'put', 'remove', 'remove another') })
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 5_000, size: 'max' }), (operations) => {
      const [ours, known] = [new IdMap<Named>(), new Map<string, Named>()]
      for (const { id, kind } of operations) {
        const value = { id }
        if (kind === 'put') {
          expect(ours.put(value)).toBe(known.get(id))
          known.set(id, value)
        } else if (kind === 'remove') {
          ours.remove(known.get(id) ?? value)
          known.delete(id)
        } else ours.remove(value)
        expect(ours.get(id)).toBe(known.get(id))
      }
      for (const { id } of operations) expect(ours.get(id)).toBe(known.get(id))
    }),
    { numRuns: 60 },
  )
})

test('it finds 100,000 ids of one form, and the rest after most of them are removed', () => {
  const values = Array.from({ length: 100_000 }, (_, i) => ({ id: `build-${i}-step` }))
  const ours = new IdMap<Named>()
  for (const value of values) expect(ours.put(value)).toBeUndefined()
  for (const [i, value] of values.entries()) if (i % 10 !== 0) ours.remove(value)
  for (const [i, value] of values.entries()) expect(ours.get(value.id)).toBe(i % 10 === 0 ? value : undefined)
})
