/** Goal: the collections of a start take time linear in its entries. Method: a table of the entries after which one is due. */
import { describe, expect, test } from 'bun:test'
import { GcSchedule } from '../../../control/log/gc-schedule.ts'

/** The entries after which a collection is due, of so many. */
function collectionPoints(entries: number): number[] {
  const schedule = new GcSchedule()
  const points: number[] = []
  for (let i = 1; i <= entries; i++) if (schedule.isDue()) points.push(i)
  expect(schedule.hasCollected).toBe(points.length > 0)
  return points
}

describe('collections of a start', () => {
  test.each<[entries: number, points: number[]]>([
    [0, []],
    [19_999, []],
    [20_000, [20_000]],
    [39_999, [20_000]],
    [100_000, [20_000, 40_000, 80_000]],
    [1_000_000, [20_000, 40_000, 80_000, 160_000, 320_000, 640_000]],
  ])('of %i entries come after %j', (entries, points) => {
    expect(collectionPoints(entries)).toEqual(points)
  })

  test('visit at most two heaps of the final size', () => {
    for (const entries of [600_000, 639_999, 640_000, 1_280_000]) {
      const visited = collectionPoints(entries).reduce((sum, point) => sum + point, 0)
      expect(visited).toBeLessThanOrEqual(2 * entries)
    }
  })
})
