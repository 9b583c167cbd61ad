/**
 * Goal: the map of ids holds what was put into it, whatever was deleted in between, and never pauses.
 * Method: random puts and deletes beside a `Map`; many ids, of which most go again.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { IdMap } from '../../../control/store/id-map.ts'

type Entry = { readonly id: string; readonly n: number }

/** So many that every table grows a few times. */
const MANY = 60_000

const entry = (i: number, n = i): Entry => ({ id: `graph-${Math.floor(i / 10)}-task-${i % 10}`, n })

describe('the map of ids', () => {
  test('does what a Map does', () => {
    const id = fc.oneof(fc.constantFrom('', '__proto__', 'a', 'é', '😀'), fc.nat(40).map(String), fc.string())
    const step = fc.record({ id, isPut: fc.boolean(), n: fc.nat() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const map = new IdMap<Entry>()
        const model = new Map<string, Entry>()
        for (const { id, isPut, n } of steps) {
          expect(map.get(id)).toBe(model.get(id))
          if (isPut) {
            expect(map.put({ id, n })).toEqual(model.get(id))
            model.set(id, map.get(id)!)
            expect(model.get(id)).toEqual({ id, n })
          } else {
            map.delete(id)
            model.delete(id)
          }
          expect(map.get(id)).toBe(model.get(id))
        }
        for (const { id } of steps) expect(map.get(id)).toBe(model.get(id))
      }),
    )
  })

  test('finds each of many, before and after most of them were deleted', () => {
    const map = new IdMap<Entry>()
    const entries = Array.from({ length: MANY }, (_, i) => entry(i))
    for (const each of entries) map.put(each)
    expect(entries.every((each) => map.get(each.id) === each)).toBe(true)
    const stays = (i: number) => i % 7 === 0
    for (const [i, each] of entries.entries()) if (!stays(i)) map.delete(each.id)
    expect(entries.every((each, i) => map.get(each.id) === (stays(i) ? each : undefined))).toBe(true)
    const others = Array.from({ length: MANY }, (_, i) => entry(MANY + i))
    for (const each of others) map.put(each)
    expect(entries.every((each, i) => map.get(each.id) === (stays(i) ? each : undefined))).toBe(true)
    expect(others.every((each) => map.get(each.id) === each)).toBe(true)
  })

  test('gives what is replaced, once', () => {
    const map = new IdMap<Entry>()
    const [first, second] = [entry(1, 1), entry(1, 2)]
    expect(map.put(first)).toBeUndefined()
    expect(map.put(second)).toBe(first)
    expect(map.put(second)).toBe(second)
    map.delete(second.id)
    expect(map.get(second.id)).toBeUndefined()
    expect(map.put(first)).toBeUndefined()
  })

  test('is as quick with ids of one form that come and go as with fresh ones', () => {
    const map = new IdMap<Entry>()
    const round = () => {
      const start = performance.now()
      for (let i = 0; i < MANY; i++) map.put(entry(i))
      for (let i = 0; i < MANY; i++) map.delete(entry(i).id)
      return performance.now() - start
    }
    const firstMs = Math.max(round(), round())
    for (let i = 0; i < 5; i++) round()
    expect(Math.min(round(), round())).toBeLessThan(3 * firstMs) // marks of deleted ids would add up
  })
})
