/**
 * Goal: a body of POST /tasks is taken as the list of tasks that it is, or refused with the name of what is wrong.
 * Method: tables of bodies and texts; each body is tried as it is and padded beyond the size that is parsed at once.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_FIELDS } from '../../../control/json/body.ts'
import { MAX_JSON_DEPTH } from '../../../control/json/depth.ts'
import { decodeGraph, isPlainTask, isTaskShape } from '../../../control/rules/decode.ts'
import { smallGraph } from '../../../control/task/small-graph.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { randomGraph } from '../../support/random-graph.ts'

const PADDING = ' '.repeat(512 * 1024)

const decode = (body: string) => runSync(decodeGraph(new TextEncoder().encode(body))).tasks
const decodeInSlices = (body: string) => decode(PADDING + body)

function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof ServiceError && error.status === 400) return error.message
    throw error
  }
  throw new Error('the body was accepted')
}

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

describe('a body', () => {
  test.each(['null', ' null ', '{}', '{"tasks":null}', '{"tasks":[]}', '{"unknown":1}'])(
    '%j is an empty graph',
    (body) => {
      expect(decode(body)).toEqual([])
      expect(decodeInSlices(body)).toEqual([])
    },
  )

  test('gives its tasks in order, with null and unknown fields as they are', () => {
    const tasks = [
      { id: 'b', type: 'noop', depends_on: null, retry: null, timeout: -1, more: [1] },
      { id: 'a', type: 'shell', params: { command: 'ls' }, depends_on: ['b'], annotations: { k: 'v' } },
      { id: null, type: null, params: null, input: 'text', timeout: 2 ** 53, retry: 0.5 },
      {},
    ]
    const body = JSON.stringify({ before: {}, tasks, after: [] })
    expect(decode(body)).toEqual(tasks as ReturnType<typeof decode>)
    expect(decodeInSlices(body)).toEqual(tasks as ReturnType<typeof decode>)
  })

  test('gives random graphs back, small and large alike', () => {
    fc.assert(
      fc.property(randomGraph(), (tasks) => {
        const body = JSON.stringify({ tasks })
        expect(decode(body)).toEqual(tasks)
        expect(decodeInSlices(body)).toEqual(tasks)
      }),
      { numRuns: 30 },
    )
  })

  test.each([
    ['[]', 'invalid JSON: expected object with a list of tasks, got array'],
    ['"tasks"', 'invalid JSON: expected object with a list of tasks, got string'],
    ['7', 'invalid JSON: expected object with a list of tasks, got number'],
    ['true', 'invalid JSON: expected object with a list of tasks, got boolean'],
    ['{"tasks":{}}', 'invalid JSON: tasks: expected array, got object'],
    ['{"tasks":"a"}', 'invalid JSON: tasks: expected array, got string'],
    ['{"tasks":0}', 'invalid JSON: tasks: expected array, got number'],
    ['{"tasks":false}', 'invalid JSON: tasks: expected array, got boolean'],
    ['{"tasks":[null]}', 'invalid JSON: tasks[0]: expected object, got null'],
    ['{"tasks":[{},[]]}', 'invalid JSON: tasks[1]: expected object, got array'],
    ['{"tasks":[{},{},"a"]}', 'invalid JSON: tasks[2]: expected object, got string'],
    ['{"tasks":[{"id":1}]}', 'invalid JSON: tasks[0].id: expected string'],
    ['{"tasks":[{"type":{}}]}', 'invalid JSON: tasks[0].type: expected string'],
    ['{"tasks":[{"tool_name":[]}]}', 'invalid JSON: tasks[0].tool_name: expected string'],
    ['{"tasks":[{"depends_on":"a"}]}', 'invalid JSON: tasks[0].depends_on: expected array of strings'],
    ['{"tasks":[{},{"depends_on":["a",1]}]}', 'invalid JSON: tasks[1].depends_on: expected array of strings'],
    ['{"tasks":[{"depends_on":[null]}]}', 'invalid JSON: tasks[0].depends_on: expected array of strings'],
    ['{"tasks":[{"retry":"1"}]}', 'invalid JSON: tasks[0].retry: expected integer'],
    ['{"tasks":[{"retry":1e999}]}', 'invalid JSON: tasks[0].retry: expected integer'],
    ['{"tasks":[{"timeout":1.5}]}', 'invalid JSON: tasks[0].timeout: expected integer of milliseconds (30000)'],
    ['{"tasks":[{"timeout":1e19}]}', 'invalid JSON: tasks[0].timeout: expected integer of milliseconds (30000)'],
    ['{"tasks":[{"timeout":true}]}', 'invalid JSON: tasks[0].timeout: expected integer of milliseconds (30000)'],
    ['{"tasks":[{"annotations":["a"]}]}', 'invalid JSON: tasks[0].annotations: expected object of strings'],
    ['{"tasks":[{"annotations":{"a":1}}]}', 'invalid JSON: tasks[0].annotations: expected object of strings'],
    ['{"tasks":[{"annotations":{"a\\nb":1}}]}', 'invalid JSON: tasks[0].annotations: expected object of strings'],
    ['{"tasks":[{"id":1},{"id":"a","type":2}]}', 'invalid JSON: tasks[0].id: expected string'],
  ])('%j is refused with %j', (body, message) => {
    expect(refusal(() => decode(body))).toBe(message)
    expect(refusal(() => decodeInSlices(body))).toBe(message)
  })

  test('without a byte is refused', () => {
    expect(refusal(() => decode(''))).toBe('invalid JSON: the body is empty')
  })

  test.each([' ', '{', '{"tasks":[', '{"tasks":[{"id":"a",}]}', 'tasks', '{"tasks":[]} x', '{"tasks":[{}{}]}'])(
    '%j is not JSON',
    (body) => {
      expect(refusal(() => decode(body))).toMatch(/^invalid JSON: ./)
      expect(refusal(() => decodeInSlices(body))).toMatch(/^invalid JSON: ./)
    },
  )

  test('that is not UTF-8 is not JSON', () => {
    const body = new Uint8Array([...new TextEncoder().encode('{"tasks":[{"id":"'), 0xff, 0x22, 0x7d, 0x5d, 0x7d])
    expect(refusal(() => runSync(decodeGraph(body)))).toBe('invalid JSON: the text is not valid UTF-8')
  })

  test('may have as many fields as the limit, and no more', () => {
    const extensions = (count: number) =>
      Array.from({ length: count }, (_, i) => `"x-${i}":{"a":[1,{"b":2}]}`).join(',')
    const graphOf = (count: number) => `{${extensions(count - 1)},"tasks":[{"id":"a","type":"noop"}]}`
    const tasksOf = (count: number) =>
      `{"tasks":[{"id":"b","type":"noop"},{"id":"a","type":"noop",${extensions(count - 2)}}]}`
    const large = PADDING.length / 20
    for (const [bodyOf, at] of [
      [graphOf, 'the body'],
      [tasksOf, 'tasks[1]'],
    ] as const) {
      const message = `invalid JSON: ${at}: more than ${MAX_FIELDS} fields`
      const small = (body: string) => smallGraph(new TextEncoder().encode(body), new Set(['noop', 'os']))
      expect(small(bodyOf(MAX_FIELDS))).toBeDefined()
      expect(small(bodyOf(MAX_FIELDS + 1))).toBeUndefined()
      expect([decode(bodyOf(MAX_FIELDS)), decodeInSlices(bodyOf(MAX_FIELDS))]).toHaveLength(2)
      for (const count of [MAX_FIELDS + 1, large]) {
        expect(refusal(() => decode(bodyOf(count)))).toBe(message)
        expect(refusal(() => decodeInSlices(bodyOf(count)))).toBe(message)
      }
    }
  })

  test('with too many fields is refused before they are parsed', () => {
    const fields = Array.from({ length: 300_000 }, (_, i) => `"x-${i}":0`).join(',')
    // The last member is no JSON: nobody has looked.
    const refused = (body: string) => refusal(() => decode(body))
    expect(refused(`{${fields},"y":nonsense}`)).toBe(`invalid JSON: the body: more than ${MAX_FIELDS} fields`)
    expect(refused(`{"tasks":[{${fields},"y":nonsense}]}`)).toBe(
      `invalid JSON: tasks[0]: more than ${MAX_FIELDS} fields`,
    )
  })

  test.each(['params', 'input'])('may nest %s as deep as the limit and no deeper', (field) => {
    const bodyOf = (levels: number) => `{"tasks":[{},{"${field}":${nested(levels)}}]}`
    expect(decode(bodyOf(MAX_JSON_DEPTH))).toHaveLength(2)
    const message = `invalid JSON: tasks[1].${field}: nested deeper than ${MAX_JSON_DEPTH} levels`
    expect(refusal(() => decode(bodyOf(MAX_JSON_DEPTH + 1)))).toBe(message)
    expect(refusal(() => decode(bodyOf(100_000)))).toBe(message)
    expect(refusal(() => decodeInSlices(bodyOf(100_000)))).toBe(message)
  })

  test.each(['equals', 'not', 'default'])('may nest %s of a condition no deeper than the limit', (field) => {
    const bodyOf = (levels: number) => `{"tasks":[{"when":{"$from":"a","${field}":${nested(levels - 1)}}}]}`
    expect(decode(bodyOf(MAX_JSON_DEPTH))).toHaveLength(1)
    const message = `invalid JSON: tasks[0].when: nested deeper than ${MAX_JSON_DEPTH} levels`
    for (const levels of [MAX_JSON_DEPTH + 1, 100_000]) {
      expect(refusal(() => decode(bodyOf(levels)))).toBe(message)
      expect(refusal(() => decodeInSlices(bodyOf(levels)))).toBe(message)
    }
  })
})

describe('a plain task', () => {
  test.each([
    { id: 'a', type: 'noop' },
    { id: '', type: '' },
    { id: 'a', type: 'noop', depends_on: [] },
    { depends_on: ['b', 'b'], type: 'noop', id: 'a' },
  ])('has no more than an id, a type and dependencies: %j', (task) => {
    expect(isPlainTask(task)).toBe(true)
    expect(isTaskShape(task)).toBe(true)
  })

  test.each([
    ...[null, [[]], 'a', {}, { id: 'a' }, { type: 'noop' }, { id: 'a', depends_on: ['b'] }],
    ...[
      { id: 1, type: 'noop' },
      { id: 'a', type: null },
      { id: 'a', type: 'noop', retry: 0 },
    ],
    ...[null, 'b', {}, [1], ['b', null]].map((depends_on) => ({ id: 'a', type: 'noop', depends_on })),
    { id: 'a', type: 'noop', depends_on: [], stranger: 1 },
    JSON.parse('{"id":"a","type":"noop","__proto__":{}}'),
  ])('is none of %j', (task) => {
    expect(isPlainTask(task)).toBe(false)
  })
})
