/**
 * Goal: a submission is refused with the words of the first check that it fails, whichever way it was taken in, and leaves
 * nothing behind. Method: graphs on both sides of what is taken in at once, with every pair of an id that stands twice
 * and another fault, against the real store and scheduler.
 */
import { describe, expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { submitGraph } from '../../../control/operations/submit.ts'
import { Scheduler } from '../../../control/scheduler/scheduler.ts'
import { TaskStore } from '../../../control/store/tasks.ts'
import type { TaskInput } from '../../../shared/contract/control.ts'
import { ServiceError } from '../../../shared/errors.ts'
import { silentLog } from '../../../shared/log.ts'
import { ScriptedExecutor } from '../../support/scripted-executor.ts'

function world() {
  const log = silentLog()
  const store = new TaskStore()
  const executors = new ExecutorRegistry([new ScriptedExecutor()])
  const scheduler = new Scheduler({
    ...{ store, executors, log, maxConcurrency: 10, abandonAfterMs: 60_000 },
    ...{ serviceId: 'test', flushOrThrow: () => {}, flush: () => {} },
  })
  const intake = {
    ...{
      store,
      scheduler,
      executors,
      log,
      unknownFields: 'refuse' as const,
      readiness: { ensure: () => {}, fault: () => undefined },
    },
    persistence: { appendGraph: async () => {}, revoke: () => {} },
    retention: { makeRoom: () => {}, checkSize: () => {} },
  }
  /** The answer, or the status and text of the refusal. */
  const submit = async (tasks: readonly TaskInput[]): Promise<unknown> => {
    try {
      return JSON.parse(
        await submitGraph(intake, new TextEncoder().encode(JSON.stringify({ tasks })), { traceId: 'trace' }),
      )
    } catch (error) {
      if (error instanceof ServiceError) return `${error.status} ${error.message}`
      throw error
    }
  }
  return { store, submit }
}

const named = (id: string): TaskInput => ({ id, type: 'test' })
/** One that does not end. */
const held = (id: string): TaskInput => ({ id, type: 'test', params: { hangs: true } })
const crowd = (count: number) => Array.from({ length: count }, (_, i) => named(`crowd-${i}`))

describe.each([0, 10, 255, 256, 1_000, 30_000])('among %d others', (count) => {
  test('a graph is answered with its ids, in order', async () => {
    const { store, submit } = world()
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
    const { store, submit } = world()
    await submit([held('held'), named('ended')])
    const ended = store.get('ended')!
    expect(ended.isTerminal).toBe(true)
    for (const tasks of [
      [...crowd(count), ...faulty],
      [...faulty, ...crowd(count)],
    ]) {
      expect(await submit(tasks)).toBe(refusal)
      expect(store.taskCount).toBe(2)
      expect(store.get('ended')).toBe(ended)
      expect(['twice', 'odd', 'untyped', 'lost', 'crowd-0'].filter((id) => store.get(id) !== undefined)).toEqual([])
    }
    expect(await submit([named('twice'), named('lost'), named('odd'), ...crowd(count)])).toMatchObject({
      accepted: 3 + count,
    })
  })
})
