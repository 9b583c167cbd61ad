/**
 * Goal: a submission is refused with the words of the first check that it fails, whichever way it was taken in, and leaves
 * nothing behind. Method: graphs on both sides of what is taken in at once, with every pair of an id that stands twice
 * and another fault, against the real store and scheduler.
 */
import { describe, expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { IdempotencyKeys } from '../../../control/log/idempotency.ts'
import { type SubmittedGraph, submit as submitGraph } from '../../../control/operations/submit.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import type { SubmitResponse, TaskInput } from '../../../shared/contract/submission.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { operationParts } from '../../support/operation-parts.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'
import { until } from '../../support/until.ts'

const FORMS = ['bytes', 'values'] as const
type Form = (typeof FORMS)[number]

const bytesOf = (tasks: readonly TaskInput[]) => new TextEncoder().encode(JSON.stringify({ tasks }))
const graphAs = (form: Form, tasks: readonly TaskInput[]): SubmittedGraph =>
  form === 'bytes' ? { body: bytesOf(tasks) } : { graph: { tasks } }

function world(form: Form) {
  const log = silentLog()
  const store = new TaskStore()
  const executors = new ExecutorRegistry([new ScriptedExecutor()])
  const scheduler = new Scheduler({
    ...{ store, executors, log, maxConcurrency: 10, abandonAfterMs: 60_000 },
    ...{ serviceId: 'test', keeper: memoryKeeper() },
  })
  const journal: string[] = []
  const parts = operationParts({
    ...{ store, scheduler, executors, log, callbacks: { check: () => {} } },
    readiness: { ensure: () => {}, fault: () => undefined },
    keeper: {
      keepGraph: async (_: Graph, body: Uint8Array) => void journal.push(new TextDecoder().decode(body)),
      revoke: () => {},
      assertWritable: () => {},
      keys: new IdempotencyKeys(),
    },
    retention: { makeRoom: () => {}, checkSize: () => {} },
  })
  /** The answer, or the status and text of the refusal. */
  const submit = async (tasks: readonly TaskInput[]): Promise<unknown> => {
    try {
      const submitted = await submitGraph(parts, graphAs(form, tasks), { traceId: 'trace' })
      const response: unknown = JSON.parse(submitted.json)
      expect(submitted.response()).toEqual(response as SubmitResponse)
      return response
    } catch (error) {
      if (error instanceof ServiceError) return `${error.status} ${error.message}`
      throw error
    }
  }
  return { store, parts, journal, submit }
}

const named = (id: string): TaskInput => ({ id, type: 'test' })
/** One that does not end. */
const held = (id: string): TaskInput => ({ id, type: 'test', params: { hangs: true } })
const crowd = (count: number) => Array.from({ length: count }, (_, i) => named(`crowd-${i}`))

const COUNTS = [0, 255, 256, 1_000]

describe.each(COUNTS.flatMap((count) => FORMS.map((form) => [count, form] as const)))(
  'among %d others, as %s',
  (count, form) => {
    test('a graph is answered with its ids, in order', async () => {
      const { store, submit } = world(form)
      const ids = [...crowd(count), named('last')].map(({ id }) => id)
      const answer = (await submit([...crowd(count), named('last')])) as { graph_id: string }
      expect(answer).toEqual({ accepted: count + 1, task_ids: ids, graph_id: answer.graph_id } as never)
      expect(store.get('last')?.graph.id).toBe(answer.graph_id)
      expect(store.taskCount).toBe(count + 1)
    })

    test.each<[string, TaskInput[], string]>([
      ['an id that stands twice', [named('twice'), named('twice')], '400 duplicate task id: twice'],
      ['an id that is in use', [named('held')], '409 task already active: held'],
      [
        'an id that is in use and one that stands twice',
        [named('held'), named('twice'), named('twice')],
        '400 duplicate task id: twice',
      ],
      ['an id that is in use, twice', [named('held'), named('held')], '400 duplicate task id: held'],
      ['an id that has ended, twice', [named('ended'), named('ended')], '400 duplicate task id: ended'],
      [
        'an unknown type before an id that stands twice',
        [{ id: 'odd', type: 'odd' }, named('twice'), named('twice')],
        '400 duplicate task id: twice',
      ],
      [
        'an unknown type and an id that is in use',
        [named('held'), { id: 'odd', type: 'odd' }],
        '400 unknown task type: odd (available: test)',
      ],
      [
        'no type behind an id that stands twice',
        [named('twice'), named('twice'), { id: 'untyped' }],
        '400 task untyped: type is required',
      ],
      [
        'a lost dependency and an id that stands twice',
        [{ ...named('lost'), depends_on: ['nobody'] }, named('twice'), named('twice')],
        '400 duplicate task id: twice',
      ],
      [
        'a lost dependency and an unknown type',
        [
          { id: 'odd', type: 'odd' },
          { ...named('lost'), depends_on: ['nobody'] },
        ],
        '400 task lost depends on unknown task nobody',
      ],
    ])('%s: refused, and nothing is left', async (_, faulty, refusal) => {
      const { store, submit } = world(form)
      await submit([held('held'), named('ended')])
      const ended = store.get('ended')!
      // Its end comes in a later turn of the event loop, if the slice of the first one is used up.
      await until(() => ended.isTerminal)
      for (const tasks of [
        [...crowd(count), ...faulty],
        [...faulty, ...crowd(count)],
      ]) {
        expect(await submit(tasks)).toStartWith(refusal)
        expect(store.taskCount).toBe(2)
        expect(store.get('ended')).toBe(ended)
        expect(['twice', 'odd', 'untyped', 'lost', 'crowd-0'].filter((id) => store.get(id) !== undefined)).toEqual([])
      }
      expect(await submit([named('twice'), named('lost'), named('odd'), ...crowd(count)])).toMatchObject({
        accepted: 3 + count,
      })
    })
  },
)

test('the journal gets the same bytes of a graph in either form, and a key stands for both', async () => {
  const { parts, journal } = world('bytes')
  const tasks = [
    { ...named('a'), params: { text: 'ü', none: null } },
    { ...named('b'), depends_on: ['a'] },
  ]
  const first = await submitGraph(parts, { graph: { tasks } }, { traceId: 'trace', key: 'key' })
  const again = await submitGraph(parts, { body: bytesOf(tasks) }, { traceId: 'trace', key: 'key' })
  expect(again.json).toBe(first.json)
  expect(again.response()).toEqual(first.response())
  expect(again.tasks()).toEqual(first.tasks())
  expect(journal).toEqual([JSON.stringify({ tasks })])
})
