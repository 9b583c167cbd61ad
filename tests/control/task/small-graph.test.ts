/**
 * Goal: the short way for small graphs says what the rules say, and nothing of what they refuse. Method: random graphs,
 * sound, cyclic and broken in any field, and the same bytes by both ways; the borders of what counts as small.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { decodeGraph } from '../../../control/rules/decode.ts'
import { validateGraph } from '../../../control/rules/validate.ts'
import { graphFieldFaults, unknownTaskField } from '../../../control/task/known-fields.ts'
import { type SmallGraph, smallGraph } from '../../../control/task/small-graph.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { randomCyclicGraph, randomGraph } from '../../support/random-graph.ts'

const TYPES: ReadonlySet<string> = new Set(['os', 'runtime', 'mcp'])

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** What the rules make of `body`; undefined when they refuse it. */
function byTheRules(body: Uint8Array): SmallGraph | undefined {
  try {
    const { fields, tasks, options } = runSync(decodeGraph(body))
    const valid = runSync(validateGraph(tasks, TYPES))
    const isKnown = graphFieldFaults(fields).length === 0 && tasks.every((task) => unknownTaskField(task) === undefined)
    return isKnown ? { ...valid, options } : undefined
  } catch (error) {
    if (error instanceof ServiceError && error.status === 400) return undefined
    throw error
  }
}

const expectAgreement = (body: Uint8Array) => expect(smallGraph(body, TYPES)).toEqual(byTheRules(body))

const asBody = (tasks: readonly unknown[]) => bytesOf(JSON.stringify({ tasks }))

/** A field of a task, right more often than not. */
const oneOf = (...values: unknown[]) => fc.constantFrom(...values)
const anyTask = fc.record(
  {
    id: oneOf('a', 'b', 'c', 'd', 'e', 'f', 'g', '', null, 7),
    type: oneOf('os', 'os', 'noop', 'shell', 'mcp', 'os.file', 'runtime.command', 'constructor', '', 'nonsense', null),
    depends_on: oneOf(undefined, [], null, ['a'], ['b', 'a'], ['a', 'a'], ['h'], [1], 'a'),
    retry: oneOf(undefined, 0, 3, null, -1, 0.5, 2 ** 60, '1'),
    timeout: oneOf(undefined, 0, 5, -1, null, 'soon'),
    queue_timeout: oneOf(undefined, 0, 5, -1, null, 0.5),
    params: oneOf(
      undefined,
      null,
      {},
      { a: [1] },
      JSON.parse('['.repeat(200) + ']'.repeat(200)),
      JSON.parse('['.repeat(201) + ']'.repeat(201)),
    ),
    input: oneOf(undefined, null, 1, JSON.parse('['.repeat(201) + ']'.repeat(201))),
    annotations: oneOf(undefined, null, { a: 'b' }, { a: 1 }, { 'a\nb': 1 }, []),
    stranger: oneOf(undefined, undefined, undefined, 1),
    'x-own': oneOf(undefined, 1),
    status: oneOf(undefined, 'success'),
  },
  { requiredKeys: ['id', 'type'] },
)

describe('the short way', () => {
  test('takes the options of a graph, and refuses those that the rules refuse', () => {
    const anyOptions = fc.record(
      {
        name: oneOf(null, 'nightly', '', 7),
        labels: oneOf(null, {}, { team: 'core' }, { 'a b': 'c' }, { a: 1 }, []),
        metadata: oneOf({}),
        stranger: oneOf(1),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(anyOptions, (options) => {
        expectAgreement(bytesOf(JSON.stringify({ ...options, tasks: [{ id: 'a', type: 'os' }] })))
      }),
    )
  })

  test('takes every sound small graph, with the edges that the rules find', () => {
    fc.assert(
      fc.property(randomGraph({ maxTasks: 40 }), (tasks) => {
        const body = asBody(tasks)
        expect(smallGraph(body, TYPES)).toBeDefined()
        expectAgreement(body)
      }),
      { numRuns: 300 },
    )
  })

  test('takes no graph with a cycle', () => {
    fc.assert(
      fc.property(randomCyclicGraph({ maxTasks: 40 }), (tasks) => {
        expect(smallGraph(asBody(tasks), TYPES)).toBeUndefined()
      }),
      { numRuns: 200 },
    )
  })

  test('takes of all sorts of graphs those that the rules take', () => {
    let taken = 0
    fc.assert(
      fc.property(fc.array(anyTask, { maxLength: 3 }), (tasks) => {
        const body = asBody(tasks)
        expectAgreement(body)
        if (byTheRules(body) !== undefined) taken++
      }),
      { numRuns: 3_000 },
    )
    expect(taken).toBeGreaterThan(10)
  })

  test.each([
    '',
    'null',
    '[]',
    '7',
    '{}',
    '{"tasks":null}',
    '{"tasks":[]}',
    '{"tasks":{}}',
    '{"tasks":[null]}',
    '{"tasks":[{"id":"a","type":"os"}]',
    '{"tasks":[{"id":"a","type":"os"}],"tasks":[]}',
    '{"tasks":[{"id":"\ud800","type":"os"}]}',
    '\ufeff{"tasks":[{"id":"a","type":"os"}]}',
    ' {"tasks" : [{"id":"a","type":"os","id":"b"}], "more": 1} ',
  ])('agrees on %j', (text) => {
    expectAgreement(bytesOf(text))
  })

  test('agrees on what is not UTF-8', () => {
    const body = bytesOf('{"tasks":[{"id":"?","type":"os"}]}')
    body[body.indexOf(0x3f)] = 0xff
    expect(byTheRules(body)).toBeUndefined()
    expectAgreement(body)
  })
})

describe('a graph counts as small', () => {
  const wide = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `t${i}`, type: 'os' }))

  test('up to 1,024 tasks', () => {
    expect(smallGraph(asBody(wide(1_024)), TYPES)?.tasks).toHaveLength(1_024)
    expect(smallGraph(asBody(wide(1_025)), TYPES)).toBeUndefined()
  })

  test('up to 64 KiB', () => {
    const body = asBody([
      { id: 'a', type: 'os', params: 'p'.repeat(64 * 1024 - asBody([{ id: 'a', type: 'os', params: '' }]).length) },
    ])
    expect(body).toHaveLength(64 * 1024)
    expect(smallGraph(body, TYPES)).toBeDefined()
    expect(smallGraph(new Uint8Array([...body, 0x20]), TYPES)).toBeUndefined()
  })

  test('up to 4,096 dependencies', () => {
    const dependents = (counts: readonly number[]) =>
      counts.map((count, i) => ({ id: `d${i}`, type: 'os', depends_on: Array(count).fill('a') }))
    const root = { id: 'a', type: 'os' }
    expect(smallGraph(asBody([root, ...dependents([4_000, 96])]), TYPES)?.edges.dependencies).toHaveLength(4_096)
    expect(smallGraph(asBody([root, ...dependents([4_000, 97])]), TYPES)).toBeUndefined()
  })
})
