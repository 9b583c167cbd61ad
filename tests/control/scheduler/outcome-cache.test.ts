/** Goal: the cache finds the newest outcome of a key that still counts, and nothing else. Method: random notes and look-ups, against a list. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Graph, Task } from '../../../control/graph/graph.ts'
import { OutcomeCache } from '../../../control/scheduler/outcome-cache.ts'
import { graphOf } from '../../support/graph.ts'

const TTL_MS = 100

const randomTask = fc.record({
  type: fc.constantFrom('os', 'mcp'),
  tool_name: fc.constantFrom('a', 'b'),
  key: fc.constantFrom('__proto__', 'k', 'a"]'),
  finishedAt: fc.integer({ min: 0, max: 300 }),
  status: fc.constantFrom('success', 'success', 'success', 'failed') as fc.Arbitrary<'success' | 'failed'>,
  isReused: fc.constantFrom(false, false, false, true),
  isGone: fc.constantFrom(false, false, true),
})

test('the newest success of the same type, tool and key counts, while it has a record and is fresh', () => {
  fc.assert(
    fc.property(fc.array(randomTask, { maxLength: 20 }), randomTask, (given, asked) => {
      const inputs = given.map(({ type, tool_name, key }, i) => ({ id: `t${i}`, type, tool_name, cache: { key } }))
      const graph: Graph | undefined = inputs.length === 0 ? undefined : graphOf(inputs)
      const isSeen = (task: Task) => !given[task.position]!.isGone
      const store = {
        graph: (id: string) => (id === graph?.id ? graph : undefined),
        taskIn: (_: Graph, id: string) => graph!.tasks.find((task) => task.id === id && isSeen(task)),
      }
      const cache = new OutcomeCache(store, 100)
      for (const task of graph?.tasks ?? []) {
        const { status, finishedAt, isReused } = given[task.position]!
        task.status = status
        task.finishedAt = finishedAt
        if (isReused) task.reusedFrom = { graph_id: 'g', task_id: 't' }
        cache.note(task)
      }
      const { type, tool_name, key } = asked
      const [task] = graphOf([{ id: 'asked', type, tool_name, cache: { key, ttl_ms: TTL_MS } }]).tasks
      const alike = (graph?.tasks ?? []).filter(({ position }) => {
        const other = given[position]!
        const isAlike = other.type === type && other.tool_name === tool_name && other.key === key
        return isAlike && other.status === 'success' && !other.isReused
      })
      // Of two that ended at once, the one that was noted last.
      const newest = alike.toSorted((a, b) => a.finishedAt! - b.finishedAt! || a.position - b.position).at(-1)
      const isFound = newest !== undefined && isSeen(newest) && newest.finishedAt! + TTL_MS > 300
      expect(cache.find(task!, 300)).toBe(isFound ? newest : undefined)
      expect([cache.hits, cache.misses]).toEqual(isFound ? [1, 0] : [0, 1])
    }),
  )
})
