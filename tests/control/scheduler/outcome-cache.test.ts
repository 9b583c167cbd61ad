/** Goal: the cache finds the newest outcome of a key that still counts, and nothing else. Method: random notes and look-ups, against a list. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { onBehalfOf } from '../../../control/executors/runtime/request.ts'
import { OutcomeCache } from '../../../control/scheduler/outcome-cache.ts'
import type { Graph, Task } from '../../../control/task/graph.ts'
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
        if (isReused) task.setRare('reused_from', { graph_id: 'g', task_id: 't' })
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

/** A cache with the outcome of one task. */
function cacheOf(input: object) {
  const graph = graphOf([{ id: 'source', type: 'runtime', cache: { key: 'k' }, ...input }])
  const [source] = graph.tasks
  source!.status = 'success'
  source!.finishedAt = 0
  source!.setRare('handle', { id: 'source-1', isTaken: true })
  const store = { graph: () => graph, taskIn: () => source }
  const defaults = { tenant: 'lab', owner: 'ada' }
  const cache = new OutcomeCache(store, 2, (task) => onBehalfOf(task.input, defaults))
  cache.note(source!)
  const isFound = (more: object) => {
    const [asked] = graphOf([{ id: 'asked', type: 'runtime', cache: { key: 'k' }, ...more }]).tasks
    return cache.find(asked!, 1) === source
  }
  return { cache, source: source!, isFound }
}

const forWhom = (control_context: unknown) => ({ params: { control_context } })

test('an outcome is of its tenant alone', () => {
  const shared = { type: 'os', tool_name: 'noop', cache: { key: 'k' } }
  const graphs = ['acme', 'globex', undefined].map((tenant) => {
    const graph = graphOf([{ id: 't', ...shared }], 0, undefined, undefined, tenant)
    graph.tasks[0]!.status = 'success'
    graph.tasks[0]!.finishedAt = 0
    return graph
  })
  const store = {
    graph: (id: string) => graphs.find((each) => each.id === id),
    taskIn: (graph: Graph) => graph.tasks[0],
  }
  for (const graph of graphs) {
    const cache = new OutcomeCache(store, 100)
    cache.note(graph.tasks[0]!)
    expect(graphs.filter(({ tasks }) => cache.find(tasks[0]!, 1) !== undefined)).toEqual([graph])
  }
})

describe('an outcome is', () => {
  test.each([
    ['the default tenant and owner', {}, forWhom({ tenant: 'lab', owner: 'ada' }), true],
    ['nulls', forWhom(null), forWhom({ tenant: null, owner: null }), true],
    ['another tenant', forWhom({ tenant: 'A' }), forWhom({ tenant: 'B' }), false],
    ['another owner', forWhom({ owner: 'A' }), forWhom({ owner: 'B' }), false],
    ['tenant and owner swapped', forWhom({ tenant: 'A', owner: 'B' }), forWhom({ tenant: 'B', owner: 'A' }), false],
    ['the default and another tenant', {}, forWhom({ tenant: 'B' }), false],
    [
      'a tenant that is a placeholder',
      forWhom({ tenant: { $param: 'a' } }),
      forWhom({ tenant: { $param: 'a' } }),
      false,
    ],
    ['a context that is a placeholder', forWhom({ $param: 'a' }), forWhom({ $param: 'a' }), false],
    ['parameters that are a placeholder', { params: { $param: 'a' } }, { params: { $param: 'a' } }, false],
    ['a context that is none', forWhom('lab'), forWhom('lab'), false],
    ['the same secrets', { secrets: { A: 'x', B: 'y' } }, { secrets: { B: 'x', A: 'y' } }, true],
    ['secrets, and none', { secrets: { A: 'x' } }, {}, false],
    ['other secrets', { secrets: { A: 'x' } }, { secrets: { A: 'y' } }, false],
    ['a secret in a file', { secrets: { A: 'x' } }, { secrets: { A: { name: 'x', file: 'f' } } }, true],
    ['secrets of parameters', { params: { secrets: { A: 'x' } } }, { params: { secrets: { A: 'y' } } }, false],
    ['names that are no text', { params: { secrets: { A: { name: { toString: 1 } } } } }, {}, false],
    ['secrets of parameters, and none', { params: { secrets: { A: 'x' } } }, {}, false],
  ])('for those with the same tenant, owner and secrets: %s', (_, source, asked, isFound) => {
    expect(cacheOf(source).isFound(asked)).toBe(isFound)
  })

  test('forgotten by the id of its attempt in another service, if it is the newest one', () => {
    const { cache, source, isFound } = cacheOf({})
    cache.forget('source-2')
    expect(isFound({})).toBe(true)
    source.setRare('handle', { id: 'source-2', isTaken: true })
    cache.note(source)
    cache.forget('source-1')
    expect(isFound({})).toBe(true)
    cache.forget('source-2')
    expect([isFound({}), cache.size]).toEqual([false, 0])
  })
})
