/** Graphs of 100,000 tasks run to their end, while others are answered. */
import { describe, expect, test } from 'bun:test'
import { startControl } from '../support/control.ts'
import { until } from '../support/until.ts'

describe('a graph of 100,000 tasks', () => {
  const COUNT = 100_000
  const chain = (first: object) =>
    Array.from({ length: COUNT }, (_, i) =>
      i === 0 ? first : { id: `task-${i}`, type: 'noop', depends_on: [`task-${i - 1}`] },
    )
  const good = { id: 'task-0', type: 'noop' }
  const bad = { id: 'task-0', type: 'os', tool_name: 'no-such-tool' }

  test.each([
    ['deep, of which the first fails', chain(bad), 'skipped'],
    [
      'wide, of which all but one depend on that one',
      Array.from({ length: COUNT }, (_, i) =>
        i === 0 ? good : { id: `task-${i}`, type: 'noop', depends_on: ['task-0'] },
      ),
      'success',
    ],
  ])(
    '%s runs to its end, and meanwhile GET /health answers',
    async (_shape, tasks, status) => {
      await using fresh = await startControl()
      const body = JSON.stringify({ tasks })
      let isOver = false
      let answers = 0
      const watching = (async () => {
        while (!isOver) {
          expect((await fresh.fetch('/health')).status).toBe(200)
          answers++
        }
      })()
      expect((await fresh.post(body)).status).toBe(202)
      await until(
        () => fresh.log.some(({ msg }) => msg === 'graph ended'),
        (ended) => ended,
        { patienceMs: 90_000 },
      )
      isOver = true
      await watching
      // A service that worked without a pause would answer once before and once after. The bench measures the waits.
      expect(answers).toBeGreaterThan(10)

      const listed = await fresh.list()
      expect(listed).toHaveLength(COUNT)
      const others = listed.slice(1).filter((task) => task.status !== status)
      expect(others).toEqual([])
    },
    120_000,
  )
})
