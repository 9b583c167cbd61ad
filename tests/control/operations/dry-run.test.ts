/**
 * Goal: a dry run says what a submission would be answered, names all faults of a graph at once, and leaves nothing behind.
 * Method: random graphs, sound and broken in any field, dry-run and then submitted against the same store; a table of
 * faults; executors that plan.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Executor } from '../../../control/executors/executor.ts'
import { invalidInput } from '../../../control/executors/executor.ts'
import { noop } from '../../../control/executors/os/noop.ts'
import { OsExecutor } from '../../../control/executors/os/os.ts'
import { sleep } from '../../../control/executors/os/sleep.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { IdempotencyKeys } from '../../../control/log/idempotency.ts'
import { dryRun, dryRunJson } from '../../../control/operations/dry-run.ts'
import { submit } from '../../../control/operations/submit.ts'
import type { Report } from '../../../control/rules/report.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { Retention } from '../../../control/task/retention.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import type { GraphCallback } from '../../../shared/contract/callbacks.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import type { GraphDryRun } from '../../../shared/contract/graph-dry-run.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn, runSync } from '../../../shared/process/steps.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { operationParts } from '../../support/operation-parts.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'
import { until } from '../../support/until.ts'

const MAX_TASKS = 5_000

function world(...more: Executor[]) {
  const log = silentLog()
  const store = new TaskStore()
  const executors = new ExecutorRegistry([new ScriptedExecutor(), new OsExecutor([noop, sleep]), ...more], log)
  const scheduler = new Scheduler({
    ...{ store, executors, log, maxConcurrency: 10, abandonAfterMs: 60_000 },
    ...{ serviceId: 'test', keeper: memoryKeeper() },
  })
  const parts = operationParts({
    ...{ store, scheduler, executors, log, maxFanOut: 2 },
    callbacks: {
      check: ({ url }: GraphCallback, report: Report) => {
        if (url.includes('@')) report('callback.url: expected an address without user and password')
      },
    },
    readiness: { ensure: () => {}, fault: () => undefined },
    keeper: { keepGraph: async () => {}, revoke: () => {}, assertWritable: () => {}, keys: new IdempotencyKeys() },
    retention: new Retention({ store, retentionMs: 0, maxStoredTasks: MAX_TASKS, log }),
  })
  const dry = async (body: string): Promise<GraphDryRun> => {
    const call = { traceId: 'trace', signal: new AbortController().signal }
    const found = await dryRun(parts, { body: new TextEncoder().encode(body) }, call)
    expect(JSON.parse(runSync(dryRunJson(found)))).toEqual(found as never)
    return found
  }
  /** Undefined for a graph that is accepted, else the text of the refusal. */
  const refusalOf = async (body: string): Promise<string | undefined> => {
    try {
      await submit(parts, { body: new TextEncoder().encode(body) }, { traceId: 'trace' })
      return undefined
    } catch (error) {
      if (error instanceof ServiceError) return error.message
      throw error
    }
  }
  return { store, dry, refusalOf }
}

const textOf = (tasks: readonly unknown[], fields: object = {}) => JSON.stringify({ ...fields, tasks })
const messagesOf = ({ errors }: GraphDryRun) => errors.map(({ message }) => message)
const task = (id: string, more: object = {}) => ({ id, type: 'test', ...more })

const oneOf = (...values: unknown[]) => fc.constantFrom(...values)
const usually = (value: unknown, ...others: unknown[]) =>
  fc.oneof({ weight: 15, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: oneOf(...others) })
const TOO_DEEP = JSON.parse('['.repeat(201) + ']'.repeat(201))
const anyTask = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record(
      {
        id: oneOf('a', 'b', 'c', 'd', 'e', 'f', 'g', 'busy', 'done', '', null, 7, '\ud800'),
        type: usually('test', 'noop', 'os.sleep', 'sleep', 'os', 'shall', '', null, 7),
        depends_on: usually(undefined, [], null, ['a'], ['b', 'a'], ['c'], ['a', 'a'], ['h', 'h'], [1], 'a'),
        retry: usually(undefined, 0, 3, null, -1, 0.5, '1'),
        timeout: usually(undefined, 5, null, 'soon', 0.5),
        params: usually({}, undefined, { duration_ms: 0 }, { duration: 1, ms: 2 }, { message: 7 }, TOO_DEEP),
        input: usually(
          undefined,
          { message: { $from: 'a' } },
          { message: { $from: 'a', path: 'x' }, deep: [{ $from: 'z' }] },
          { message: { $from: 7 }, more: { $param: 'v' } },
          { message: { $param: 'v' } },
          { message: { $param: 'w' } },
          { message: { $param: 'v', x: 1 } },
          { message: { $literal: { $from: 'z' } } },
        ),
        run_if: usually(undefined, 'always', 'failed', 'sometimes', null),
        when: usually(
          undefined,
          { $from: 'a', equals: 1 },
          { $from: 'z', path: '/status', in: ['success'] },
          { $from: 'b', matches: 7 },
          { equals: 1 },
          7,
        ),
        continue_on_error: usually(undefined, true, 'yes'),
        annotations: usually(undefined, null, { a: 1 }),
        depend_on: usually(undefined, 1),
        limits: usually(undefined, 1),
      },
      { requiredKeys: ['id', 'type'] },
    ),
  },
  { weight: 1, arbitrary: oneOf(null, 7, 'a', []) },
)
const anyGraph = fc.record(
  {
    tasks: fc.oneof(
      { weight: 20, arbitrary: fc.array(anyTask, { maxLength: 5 }) },
      { weight: 1, arbitrary: oneOf(null, 7) },
    ),
    name: usually(undefined, 'nightly', '', 7),
    params: usually(undefined, { v: 1 }, { v: null }, { 'a b': 1 }, []),
    labels: usually(undefined, { 'a b': 'c' }),
    scope: usually(undefined, 'graph', 'service'),
    callback: usually(undefined, { url: 'http://a/', event: 1 }, { url: 'http://a:b@c/' }, 'x', { url: 'http://a' }),
    title: usually(undefined, 'x'),
  },
  { requiredKeys: ['tasks'] },
)

describe('a dry run and a submission', () => {
  test('agree on every graph, and on the first fault', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(anyGraph, async (graph) => {
        const { store, dry, refusalOf } = world()
        expect(await refusalOf(textOf([task('done'), task('busy', { params: { hangs: true } })]))).toBeUndefined()
        await until(() => store.get('done')?.isTerminal)
        const body = JSON.stringify(graph)
        const { valid, errors } = await dry(body)
        const refusal = await refusalOf(body)
        const refusing = errors.filter(({ fails }) => fails !== true)
        expect(refusing.length === 0).toBe(refusal === undefined)
        expect(refusing[0]?.message).toBe(refusal as string)
        expect(errors.length > 0).toBe(!valid)
        if (valid) accepted++
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(20)
  })

  test.each(['', 'null', '[]', '7', '{', '{}', '{"tasks":null}', '{"tasks":[]}', '{"tasks":{}}', '{"tasks":[null]}'])(
    'agree on %j',
    async (body) => {
      const { dry, refusalOf } = world()
      expect(messagesOf(await dry(body))).toEqual([(await refusalOf(body))!])
    },
  )

  test('agree on a graph with more tasks than are kept', async () => {
    const { dry, refusalOf } = world()
    const body = textOf(Array.from({ length: MAX_TASKS + 1 }, (_, i) => task(`t${i}`)))
    const found = await dry(body)
    expect(found).toMatchObject({ valid: false, waves: [], critical_path: [] })
    expect(messagesOf(found)).toEqual([(await refusalOf(body))!])
  })
})

describe('a dry run', () => {
  test('names the faults of all checks, in their order', async () => {
    const { dry, refusalOf } = world()
    await refusalOf(textOf([task('busy', { params: { hangs: true } })]))
    const found = await dry(
      textOf(
        [
          { id: 'odd', type: 7, retry: '1', depends_on: ['gone'] },
          { type: 'test' },
          task('bare', { type: '' }),
          task('often', { retry: -1 }),
          task('twice'),
          task('twice'),
          task('lost', { depends_on: ['gone', 'gone', 'lost'] }),
          task('x', { depends_on: ['y'] }),
          task('y', { depends_on: ['x'] }),
          task('p', { depends_on: ['q'] }),
          task('q', { depends_on: ['p', 'twice'] }),
          task('strange', { type: 'shel' }),
          task('misspelt', { depend_on: [], tries: 1 }),
          { id: 'nap', type: 'sleep', params: { duration: 1, loud: true } },
          task('busy'),
        ],
        { name: '', labels: { 'a b': '' }, titel: 1, callback: { url: 'http://a:b@c/' } },
      ),
    )
    expect(found).toMatchObject({ valid: false, waves: [], critical_path: [], runtime: {} })
    expect(found.errors).toEqual([
      { message: 'invalid JSON: tasks[0].type: expected string', task_id: 'odd' },
      { message: 'invalid JSON: tasks[0].retry: expected integer', task_id: 'odd' },
      { message: 'invalid JSON: name: expected 1 to 200 characters, none of them a control character' },
      { message: 'invalid JSON: labels: expected names of 1 to 63 letters, digits, ".", "_", "/" or "-", got "a b"' },
      { message: 'task id is required' },
      { message: 'task bare: type is required', task_id: 'bare' },
      { message: 'task often: retry must be a non-negative integer', task_id: 'often' },
      { message: 'duplicate task id: twice', task_id: 'twice' },
      { message: 'task odd depends on unknown task gone', task_id: 'odd' },
      { message: 'task lost depends on unknown task gone', task_id: 'lost' },
      { message: 'task lost cannot depend on itself', task_id: 'lost' },
      { message: 'cycle detected in task graph: x -> y -> x' },
      { message: 'cycle detected in task graph: p -> q -> p' },
      { message: expect.stringContaining('unknown task type: shel (available: os, test)'), task_id: 'strange' },
      { message: 'unknown field "titel" in graph' },
      { message: 'unknown field "depend_on" in task misspelt (did you mean "depends_on"?)', task_id: 'misspelt' },
      { message: 'unknown field "tries" in task misspelt', task_id: 'misspelt' },
      { message: 'unknown parameter "duration" of os.sleep in task nap (did you mean "duration_ms"?)', task_id: 'nap' },
      { message: 'unknown parameter "loud" of os.sleep in task nap', task_id: 'nap' },
      { message: expect.stringContaining('task already active: busy (in graph '), task_id: 'busy' },
      { message: 'callback.url: expected an address without user and password' },
    ])
  })

  const nap = (id: string, more: object = {}) => ({ id, type: 'sleep', params: { duration_ms: 'long' }, ...more })
  const $from = { $from: 'a' }

  test.each<[string, object, object?]>([
    ['certain to fail', nap('b')],
    ['certain to fail after another', nap('b', { depends_on: ['a'] })],
    ['certain to fail with the value of a parameter', nap('b', { params: { duration_ms: { $param: 'p' } } })],
    ['certain to fail for each element', nap('b', { for_each: [1, 2] })],
    [
      'with a list that is too long',
      { ...task('b'), for_each: [1, 2, 3] },
      { message: expect.stringContaining('has 3 elements') },
    ],
  ])('has an error for a task that is %s; a submission accepts it', async (_, doomed, fault = {}) => {
    const { dry, refusalOf } = world()
    const body = textOf([task('a'), doomed], { params: { p: 'long' } })
    expect(await dry(body)).toMatchObject({
      ...{ valid: false, warnings: [] },
      errors: [
        { message: expect.stringMatching(/^task b: .*(duration_ms|for_each)/), task_id: 'b', fails: true, ...fault },
      ],
    })
    expect(await refusalOf(body)).toBeUndefined()
  })

  test.each([
    ['may fail', { continue_on_error: true }],
    ['runs only after a failure', { run_if: 'failed', depends_on: ['a'] }],
    ['runs on a condition', { when: { ...$from, equals: 1 }, depends_on: ['a'] }],
    ['may take over an outcome', { cache: { key: 'k' } }],
    ['has a list that is not known', { for_each: $from, depends_on: ['a'] }],
  ])('warns of a task that is certain to fail but %s', async (_, more) => {
    const { valid, errors, warnings } = await world().dry(textOf([task('a'), nap('b', more)]))
    expect([valid, errors, warnings.map(({ task_id }) => task_id)]).toEqual([true, [], ['b']])
  })

  test('says nothing of parameters that are not known yet', async () => {
    const later = nap('b', { params: { duration_ms: $from }, depends_on: ['a'] })
    expect(await world().dry(textOf([task('a'), later]))).toMatchObject({ valid: true, errors: [], warnings: [] })
  })

  test('finds an error behind more warnings than it shows', async () => {
    const tolerated = Array.from({ length: 101 }, (_, i) => nap(`t${i}`, { continue_on_error: true }))
    const { errors, warnings } = await world().dry(textOf([...tolerated, nap('last')]))
    expect([errors.map(({ task_id }) => task_id), warnings.length]).toEqual([['last'], 100])
  })

  test('suggests parameters for the first unknown names, and leaves time for I/O', async () => {
    const letters = (seed: number, length: number) =>
      Array.from({ length }, (_, i) => String.fromCharCode(97 + ((seed * (i + 7) + i * i) % 26))).join('')
    const params = Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`${letters(i, 56)}p${i}`, 1]))
    const names = Object.keys(params).map((name) => `${name}x`)
    const input = Array.from({ length: 2_000 }, (_, i) => ({ $param: names[i] ?? `${letters(i, 50)}${i}` }))
    let turns = 0
    const turning = setInterval(() => turns++, 0)
    const { errors, truncated } = await world().dry(textOf([task('a', { input })], { params }))
    clearInterval(turning)
    expect([errors.length, truncated]).toEqual([1_000, true])
    expect(errors[0]!.message).toContain('did you mean')
    expect(errors.filter(({ message }) => message.includes('did you mean'))).toHaveLength(20)
    expect(turns).toBeGreaterThan(0)
  })

  test('names the place at which the values of parameters are too large together, as a submission does', async () => {
    const { dry, refusalOf } = world()
    const params = { p: 'x'.repeat(1_000_000) }
    const graphOf = (count: number) =>
      textOf(
        [task('a', { input: { outcomes: ['ok'], more: Array.from({ length: count }, () => ({ $param: 'p' })) } })],
        { params },
      )
    const tooLarge =
      'task a: input.more[67]: the values of references and parameters have more than 67108864 bytes together'
    expect(messagesOf(await dry(graphOf(1_500)))).toEqual([tooLarge])
    expect(await refusalOf(graphOf(68))).toBe(tooLarge)
    expect(messagesOf(await dry(graphOf(67)))).toEqual([])
    expect(await refusalOf(graphOf(67))).toBeUndefined()
  })

  test('names at most 10 cycles', async () => {
    const { dry } = world()
    const pairs = Array.from({ length: 11 }, (_, i) => [
      task(`a${i}`, { depends_on: [`b${i}`] }),
      task(`b${i}`, { depends_on: [`a${i}`] }),
    ])
    expect(messagesOf(await dry(textOf(pairs.flat())))).toHaveLength(10)
  })
})

describe('plans of delegated tasks', () => {
  let asking = 0
  let most = 0
  const remote: Executor = {
    type: 'remote',
    execute: () => null,
    async plan({ input }) {
      most = Math.max(most, ++asking)
      await nextTurn() // requests beyond the limit would be sent in this turn
      asking--
      if (input === 'refuse') throw invalidInput('no such host')
      if (input === 'break') throw new Error('broke')
      return { error: `planned ${input}` }
    },
  }

  test('are asked for 100 tasks, 8 at a time', async () => {
    const { dry } = world(remote)
    const found = await dry(textOf(Array.from({ length: 101 }, (_, i) => ({ id: `t${i}`, type: 'remote' }))))
    expect(found).toMatchObject({ valid: true, truncated: true })
    expect(Object.keys(found.runtime)).toHaveLength(100)
    expect(most).toBe(8)
  })
})
