/**
 * Goal: a failure skips all tasks downstream of it, however many, and no others. Method: scripts that fail.
 */
import { describe, expect, test } from 'bun:test'
import { after, task, World } from '../../support/scheduler-world.ts'

describe('a failed task', () => {
  test('skips only those downstream of it, each with the reason nearest to it', async () => {
    const world = new World()
    world.submit([
      task('a', { outcomes: ['fail'] }),
      task('b', {}, after('a')),
      task('c', {}, after('b')),
      task('d', {}, after('c', 'e')),
      task('e'),
      task('f', {}, after('e')),
    ])
    await world.over()
    expect(world.graphs[0]!.tasks.map(({ id, status, errorText }) => [id, status, errorText])).toEqual([
      ['a', 'failed', 'attempt 1 failed'],
      ['b', 'skipped', 'dependency a failed'],
      ['c', 'skipped', 'dependency b skipped'],
      ['d', 'skipped', 'dependency c skipped'],
      ['e', 'success', undefined],
      ['f', 'success', undefined],
    ])
  })

  test('skips 100,000 tasks in a row', async () => {
    const size = 100_000
    const world = new World()
    const row = Array.from({ length: size }, (_, i) => task(`t${i}`, {}, i === 0 ? {} : after(`t${i - 1}`)))
    world.submit([task('t0', { outcomes: ['fail'] }), ...row.slice(1)])
    await world.over()
    expect(world.counters.ended).toMatchObject({ failed: 1, skipped: size - 1 })
    expect(world.graphs[0]!.tasks.at(-1)!.errorText).toBe(`dependency t${size - 2} skipped`)
  })
})
