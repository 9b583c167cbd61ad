/**
 * Goal: the checks of a graph, their texts and the order in which they come. Method: a table with a row per fault; pairs
 * of faults in one graph, of which the earlier check must speak; random graphs with and without a cycle.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { dependencyCounts } from '../../../control/rules/edges.ts'
import { validateGraph } from '../../../control/rules/validate.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { randomCyclicGraph, randomGraph } from '../../support/random-graph.ts'

const TYPES: ReadonlySet<string> = new Set(['runtime', 'os', 'mcp'])

const validate = (tasks: TaskInput[]) => runSync(validateGraph(tasks, TYPES))

function refusal(tasks: TaskInput[]): string {
  try {
    validate(tasks)
  } catch (error) {
    if (error instanceof ServiceError && error.status === 400) return error.message
    throw error
  }
  throw new Error('the graph was accepted')
}

/** A fault of each check after the first, in the order of the checks, made of tasks that share no id with another row. */
const FAULTS: { readonly fault: string; readonly tasks: TaskInput[]; readonly message: string }[] = [
  { fault: 'no id', tasks: [{ type: 'os' }], message: 'task id is required' },
  { fault: 'a null id', tasks: [{ id: null, type: 'os' }], message: 'task id is required' },
  { fault: 'an empty id', tasks: [{ id: '', type: 'os' }], message: 'task id is required' },
  { fault: 'no type', tasks: [{ id: 'a1' }], message: 'task a1: type is required' },
  { fault: 'a null type', tasks: [{ id: 'a2', type: null }], message: 'task a2: type is required' },
  { fault: 'an empty type', tasks: [{ id: 'a3', type: '' }], message: 'task a3: type is required' },
  {
    fault: 'a negative retry',
    tasks: [{ id: 'a4', type: 'os', retry: -1 }],
    message: 'task a4: retry must be a non-negative integer',
  },
  {
    fault: 'a fractional retry',
    tasks: [{ id: 'a5', type: 'os', retry: 0.5 }],
    message: 'task a5: retry must be a non-negative integer',
  },
  {
    fault: 'a retry beyond counting',
    tasks: [{ id: 'a6', type: 'os', retry: 2 ** 53 }],
    message: 'task a6: retry must be a non-negative integer',
  },
  {
    fault: 'an id that stands twice',
    tasks: [
      { id: 'b1', type: 'os' },
      { id: 'b1', type: 'mcp' },
    ],
    message: 'duplicate task id: b1',
  },
  {
    fault: 'an unknown dependency',
    tasks: [{ id: 'c1', type: 'os', depends_on: ['nobody'] }],
    message: 'task c1 depends on unknown task nobody',
  },
  {
    fault: 'a task that depends on itself',
    tasks: [{ id: 'c2', type: 'os', depends_on: ['c2'] }],
    message: 'task c2 cannot depend on itself',
  },
  {
    fault: 'a cycle',
    tasks: [
      { id: 'd1', type: 'os', depends_on: ['d2'] },
      { id: 'd2', type: 'os', depends_on: ['d3'] },
      { id: 'd3', type: 'os', depends_on: ['d1'] },
    ],
    message: 'cycle detected in task graph: d1 -> d2 -> d3 -> d1',
  },
  {
    fault: 'an unknown type',
    tasks: [{ id: 'e1', type: 'python' }],
    message:
      'unknown task type: python (available: mcp, os, runtime) or a short form: dns, file, http, noop, shell, sleep, tcp',
  },
]

/** Which check a fault belongs to: faults of one check are told in the order of the list of tasks. */
const checkOf = ({ message }: { message: string }) =>
  [/is required$|non-negative/, /^duplicate/, /^task \S+ (depends|cannot)/, /^cycle/, /^unknown/].findIndex((shape) =>
    shape.test(message),
  )

describe('a graph', () => {
  test('without tasks is refused', () => {
    expect(refusal([])).toBe('task graph is empty')
  })

  test.each(FAULTS)('with $fault is refused with "$message"', ({ tasks, message }) => {
    expect(refusal(tasks)).toBe(message)
    expect(refusal([{ id: 'before', type: 'os' }, ...tasks, { id: 'after', type: 'os' }])).toBe(message)
  })

  test('with two faults is refused by the earlier check, wherever the faults stand', () => {
    for (const one of FAULTS) {
      for (const other of FAULTS) {
        if (one === other) continue
        const first = checkOf(one) <= checkOf(other) ? one : other
        expect(refusal([...one.tasks, ...other.tasks])).toBe(first.message)
      }
    }
  })

  test('with two faults of one task’s dependencies is refused with the first of them', () => {
    expect(refusal([{ id: 'a', type: 'os', depends_on: ['a', 'nobody'] }])).toBe('task a cannot depend on itself')
    expect(refusal([{ id: 'a', type: 'os', depends_on: ['nobody', 'a'] }])).toBe(
      'task a depends on unknown task nobody',
    )
  })

  test('with a long cycle names only the beginning of it', () => {
    const ring = (length: number) =>
      Array.from({ length }, (_, i) => ({ id: `t${i}`, type: 'os', depends_on: [`t${(i + 1) % length}`] }))
    const named = 't0 -> t1 -> t2 -> t3 -> t4 -> t5 -> t6 -> t7'
    expect(refusal(ring(8))).toBe(`cycle detected in task graph: ${named} -> t0`)
    expect(refusal(ring(9))).toBe(`cycle detected in task graph: ${named} -> ...`)
  })

  test('may name its types in the older form and with their tool', () => {
    const types = ['os', 'shell', 'http', 'os.shell', 'runtime.command', 'mcp']
    expect(validate(types.map((type) => ({ id: type, type }))).tasks).toHaveLength(types.length)
    expect(refusal([{ id: 'a', type: 'mcp.call' }])).toStartWith(
      'unknown task type: mcp.call (available: mcp, os, runtime)',
    )
    const message = 'unknown task type: shell (available: mcp)'
    expect(() => runSync(validateGraph([{ id: 'a', type: 'shell' }], new Set(['mcp'])))).toThrow(message)
  })

  test('may leave out or nullify whatever is optional', () => {
    const { tasks, edges } = validate([
      { id: 'a', type: 'os' },
      { id: 'b', type: 'os', depends_on: null, retry: null, timeout: null },
      { id: 'c', type: 'os', depends_on: ['a', 'b', 'a'], retry: 0 },
    ])
    expect(tasks.map((task) => task.id)).toEqual(['a', 'b', 'c'])
    expect([...dependencyCounts(edges)]).toEqual([0, 0, 3])
  })

  test('without a cycle is never refused', () => {
    fc.assert(
      fc.property(randomGraph({ maxTasks: 40 }), (tasks) => {
        expect(validate(tasks).tasks).toEqual(tasks)
      }),
      { numRuns: 200 },
    )
  })

  test('with a cycle is always refused', () => {
    fc.assert(
      fc.property(randomCyclicGraph({ maxTasks: 40 }), (tasks) => {
        expect(refusal(tasks)).toMatch(/^(cycle detected in task graph: .+ -> |task .+ cannot depend on itself$)/s)
      }),
      { numRuns: 200 },
    )
  })

  test('may be 100,000 tasks deep or wide', () => {
    const row = Array.from({ length: 100_000 }, (_, i) => ({ id: `t${i}`, type: 'os', depends_on: [`t${i + 1}`] }))
    const end = { id: 't100000', type: 'os' }
    expect(validate([...row, end]).tasks).toHaveLength(100_001)
    expect(validate([...row.map(({ id, type }) => ({ id, type, depends_on: [end.id] })), end]).tasks).toHaveLength(
      100_001,
    )
    const collector = { ...end, depends_on: row.map(({ id }) => id) }
    expect(validate([...row.map(({ id, type }) => ({ id, type })), collector]).edges.dependents).toHaveLength(100_000)
    expect(refusal([...row, { ...end, depends_on: ['t0'] }])).toStartWith('cycle detected in task graph: t0 -> t1 -> ')
  })
})
