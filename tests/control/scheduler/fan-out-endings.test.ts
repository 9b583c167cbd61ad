/**
 * Goal: what a task with `for_each` ends with agrees with its children, whatever happens while its result is made.
 * Method: the real scheduler and store; the results of children are in files that the test answers for.
 */
import { expect, test } from 'bun:test'
import type { KeptResults } from '../../../control/log/keeper.ts'
import { ResultFile } from '../../../control/rules/result-file.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { task, World } from '../../support/scheduler-world.ts'

/** A world where results of children are in files, and the files that were dropped. */
function worldWithFiles(results: Partial<KeptResults>) {
  const keeper = memoryKeeper({
    keep: async ({ id }) => new ResultFile(id),
    read: async ({ name }) => ({ json: JSON.stringify(name) }),
    ...results,
  })
  const world = new World({ keeper })
  const dropped: string[] = []
  world.store.onResultDropped = ({ name }) => dropped.push(name)
  return { world, dropped }
}

test('a cancel while the result is written drops its file', async () => {
  const writing = Promise.withResolvers<void>()
  const written = Promise.withResolvers<void>()
  const { world, dropped } = worldWithFiles({
    keepJson: async () => {
      writing.resolve()
      await written.promise
      return new ResultFile('list')
    },
  })
  world.submit([task('map', {}, { for_each: [1, 2] })])
  await writing.promise
  void world.scheduler.cancel(world.task('map'))
  written.resolve()
  await world.over()
  expect(world.task('map')).toMatchObject({ status: 'cancelled', result: undefined })
  expect(dropped).toEqual(['list'])
})

test('the file of a result that is kept is not dropped', async () => {
  const { world, dropped } = worldWithFiles({ keepJson: async () => new ResultFile('list') })
  world.submit([task('map', {}, { for_each: [1, 2] })])
  await world.over()
  expect(world.task('map')).toMatchObject({ status: 'success', result: new ResultFile('list') })
  expect(dropped).toEqual([])
})

test('lists that are made at the same time count together', async () => {
  const fileOf = (text: string) => new ResultFile(`1-1-1-00000000-${text.length}.json`)
  const maps = Array.from({ length: 8 }, (_, i) => task(`map${i}`, { turns: 1 }, { for_each: [1, 2] }))
  for (const isLarge of [false, true]) {
    const keeper = memoryKeeper({
      ...(isLarge && { keep: async (_, result) => fileOf(JSON.stringify(result)) }),
      read: async ({ bytes }) => ({ json: JSON.stringify('x'.repeat(bytes - 2)) }),
      keepJson: async (_, pieces) => {
        await nextTurn() // all of them are being written
        return fileOf(pieces.join(''))
      },
    })
    const world = new World({ keeper, maxGraphResultBytes: 640 })
    const graph = world.submit(maps)
    await world.over()
    expect(graph.storedBytes).toBeLessThanOrEqual(640)
    expect(graph.storedBytes).toBeGreaterThan(550)
  }
})

test('the deletion of a child while the result is read fails the task, with null in its place', async () => {
  const reading = Promise.withResolvers<void>()
  const read = Promise.withResolvers<void>()
  const { world, dropped } = worldWithFiles({
    read: async ({ name }) => {
      if (name === 'map[1]') {
        reading.resolve()
        await read.promise
      }
      return { json: JSON.stringify(name) }
    },
    keepJson: async (_, pieces) => new ResultFile(pieces.join('')),
  })
  world.submit([task('map', {}, { for_each: [1, 2] })])
  await reading.promise
  world.scheduler.delete(world.task('map[0]'))
  read.resolve()
  await world.over()
  expect(world.task('map')).toMatchObject({
    status: 'failed',
    rare: { error: '1 of 2 deleted: map[0]' },
    result: new ResultFile('[null,"map[1]"]'),
  })
  expect(dropped).toEqual(['map[0]', '["map[0]","map[1]"]'])
})
