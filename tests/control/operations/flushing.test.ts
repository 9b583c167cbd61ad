/**
 * Goal: what an operation shows is kept, whatever door it is shown at, and nothing is shown before.
 * Method: the real store, with a change right before each call and others while it waits; a keeper of the test notes how
 * many changes there were when it was asked, and whatever is shown looks whether that is all of them. It keeps at once, or
 * when the test says so.
 */
import { expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { NO_OTHERS } from '../../../control/log/embedded-keeper.ts'
import { getCall, getRecord, getTask } from '../../../control/operations/get.ts'
import { ownTaskLists } from '../../../control/operations/list.ts'
import { readLogs } from '../../../control/operations/logs.ts'
import { newestTasks } from '../../../control/operations/newest-tasks.ts'
import { openTaskLog } from '../../../control/operations/task-log.ts'
import { wait } from '../../../control/operations/wait.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { operationParts } from '../../support/operation-parts.ts'
import { until } from '../../support/until.ts'

function world() {
  const store = new TaskStore()
  const graph = acceptGraph(store, [
    { id: 'a', type: 'mcp' },
    { id: 'b', type: 'mcp' },
  ])
  const [task, other] = graph.tasks
  let flushed = -1
  let keeping: PromiseWithResolvers<void> | undefined
  const kept = () => {
    flushed = store.seq
    return keeping?.promise
  }
  const change = () => store.apply({ kind: 'progress', task: other!, at: Date.now(), message: 'further' })
  const end = () => {
    store.apply({ kind: 'attempt-started', task: task!, at: 1 })
    store.apply({ kind: 'ended', task: task!, at: 2, ending: { status: 'success', result: { stdout: 'out' } } })
  }
  return {
    parts: operationParts({
      ...{ store, eventStreams: { position: 0 } },
      keeper: { kept, others: NO_OTHERS, results: { read: async () => ({ lost: 'lost' }) } },
      executors: new ExecutorRegistry(),
      scheduler: { outputOf: () => undefined, slotUse: { taken: 0, count: 1, hold: undefined, paused: new Map() } },
    }),
    change,
    end,
    isFlushed: () => flushed === store.seq,
    /** From now on it takes time to keep something. */
    delay: () => {
      keeping = Promise.withResolvers()
    },
    finish: () => keeping?.resolve(),
  }
}
type World = ReturnType<typeof world>

const signal = new AbortController().signal
const waiter = { signal, report: () => {} }
const newest = { filter: {}, before: undefined, limit: 10 }
const ended = { task_ids: ['a'], until: 'all', timeoutMs: 60_000 } as const

/** Each says whether all was flushed at the moment of showing, or right after it. */
const SHOWN: Readonly<Record<string, (world: World) => unknown>> = {
  'a task': ({ parts, isFlushed }) => getTask(parts, { id: 'a' }, isFlushed),
  'a record': async ({ parts, isFlushed }) =>
    (await getRecord(parts, { id: 'a' }, () => undefined)) !== '' && isFlushed(),
  'a call': async ({ parts, isFlushed }) => (await getCall(parts, 'a')) !== '' && isFlushed(),
  'a list': async ({ parts, isFlushed }) =>
    (await ownTaskLists.list(parts, { filter: {}, cursor: undefined, limit: undefined }, '')).firstPart !== '' &&
    isFlushed(),
  'the newest': async ({ parts, isFlushed }) =>
    (await newestTasks(parts, newest, isFlushed, '')).tasks.every((isShownFlushed) => isShownFlushed),
  logs: async ({ parts, end, isFlushed }) => {
    end()
    const request = { address: { id: 'a' }, stream: undefined, offset: 0, limit: 10 }
    return (await readLogs(parts, request, { signal, traceId: '' })).page?.text === 'out' && isFlushed()
  },
  'a log': async ({ parts, end, isFlushed }) => {
    end()
    const request = { stream: 'stdout', start: { offset: 0 }, followUntil: undefined } as const
    return (await openTaskLog(parts, { id: 'a' }, request, { signal, traceId: '' })).status === 'success' && isFlushed()
  },
  'the end of a log': async ({ parts, change, end, isFlushed }) => {
    change()
    const request = { stream: 'stdout', start: { offset: 0 }, followUntil: 'task ended' } as const
    const opening = openTaskLog(parts, { id: 'a' }, request, { signal, traceId: '' })
    await Bun.sleep(0)
    end()
    change()
    const log = await opening
    while ((await log.next()) !== undefined);
    return isFlushed()
  },
  'the end of a wait': async ({ parts, change, end, isFlushed }) => {
    const waiting = wait(parts, { ...ended, task_ids: [...ended.task_ids] }, waiter, isFlushed)
    await Bun.sleep(0)
    end()
    change()
    return waiting
  },
  'a record that was waited for': async ({ parts, change, end, isFlushed }) => {
    const waiting = getRecord(parts, { id: 'a' }, () => signal)
    await Bun.sleep(0)
    end()
    change()
    return (await waiting).includes('"success"') && isFlushed()
  },
}

test.each(Object.keys(SHOWN))('%s', async (name) => {
  const each = world()
  each.change()
  expect(each.isFlushed()).toBe(false)
  expect(await SHOWN[name]!(each)).toBe(true)
})

test.each(Object.keys(SHOWN))('%s is shown only once it is kept', async (name) => {
  const each = world()
  each.change()
  each.delay()
  let isShown = false
  const shown = Promise.resolve(SHOWN[name]!(each)).finally(() => {
    isShown = true
  })
  await until(each.isFlushed, Boolean)
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  expect(isShown).toBe(false)
  each.finish()
  expect(await shown).toBe(true)
})
