/** Goal: a chain of tasks that hand a value on gets it to the end, and leaves time for I/O. Method: 10,000 tasks in memory. */
import { expect, test } from 'bun:test'
import { World } from '../../support/scheduler-world.ts'

const LENGTH = 10_000

test('a chain of references hands its value on, and lets the event loop turn meanwhile', async () => {
  const world = new World()
  const chain = Array.from({ length: LENGTH }, (_, i) => ({
    ...{ id: `t${i}`, type: 'test', depends_on: i === 0 ? [] : [`t${i - 1}`] },
    input: { outcomes: ['ok'], given: i === 0 ? 'the value' : { $from: `t${i - 1}`, path: '/id' } },
  }))
  let turns = 0
  const count = () => {
    turns++
    if (!world.isOver) setImmediate(count)
  }
  const graph = world.submit(chain, (task) => {
    task.hasPlaceholders = task.position > 0
  })
  setImmediate(count)
  await world.over()
  expect(graph.tasks.every(({ status }) => status === 'success')).toBe(true)
  expect(graph.tasks.at(-1)!.resolvedInput).toEqual({ outcomes: ['ok'], given: `t${LENGTH - 2}` })
  expect(turns).toBeGreaterThan(5)
})
