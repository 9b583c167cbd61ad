/**
 * Goal: looks come one after the other with their pauses, are bounded, and end with their task.
 * Method: the class alone, with a world that the test holds.
 */
import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { ExecutionError, type Look } from '../../../control/executors/executor.ts'
import type { Failure } from '../../../control/rules/failure.ts'
import { MAX_POLLS, MAX_UNMET_CHARACTERS, POLL_TIMEOUT_MS, Polls } from '../../../control/scheduler/polls.ts'
import type { Task } from '../../../control/task/graph.ts'
import { taskOf } from '../../support/graph.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

interface Asking {
  readonly task: Task
  readonly signal: AbortSignal
  answer(look: Look): void
  fail(error: unknown): void
}

function world() {
  const asking: Asking[] = []
  const met: [string, unknown][] = []
  const faults: [string, Failure][] = []
  const defects: unknown[] = []
  const looks: Polls = new Polls({
    look: (task, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<Look>()
      asking.push({ task, signal, answer: resolve, fail: reject })
      signal.addEventListener('abort', () => reject(new ExecutionError('cancelled', 'stopped')))
      return promise
    },
    onMet: (task, result) => {
      met.push([task.id, result])
      looks.withdraw(task)
    },
    onFault: (task, failure) => {
      faults.push([task.id, failure])
      looks.withdraw(task)
    },
    wake: () => {
      while (looks.step());
    },
    onDefect: (error) => defects.push(error),
  })
  const watch = (id: string, more: object = {}) => {
    const task = taskOf({ id, type: 'wait', params: {}, ...more })
    looks.watch(task)
    while (looks.step());
    return task
  }
  return { looks, asking, met, faults, defects, watch }
}

const settled = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

test('a look follows after a pause that grows, until one is met', async () => {
  const { asking, met, watch } = world()
  const task = watch('a', { backoff: { initial_ms: 100, factor: 2, max_ms: 300 } })
  const pauses = [100, 200, 300, 300]
  for (const [i, pauseMs] of pauses.entries()) {
    expect(asking.length).toBe(i + 1)
    asking[i]!.answer({ isMet: false, why: `${i}${'x'.repeat(MAX_UNMET_CHARACTERS)}` })
    await settled()
    expect(task.rare.unmet).toBe(`${i}${'x'.repeat(MAX_UNMET_CHARACTERS - 1)}`)
    jest.advanceTimersByTime(pauseMs - 5)
    expect(asking.length).toBe(i + 1)
    jest.advanceTimersByTime(10)
  }
  expect(asking.length).toBe(pauses.length + 1)
  asking.at(-1)!.answer({ isMet: true, result: 7 })
  await settled()
  expect(met).toEqual([['a', 7]])
})

test('at most MAX_POLLS go on at a time, and all come', async () => {
  const { asking, met, watch } = world()
  for (let i = 0; i < MAX_POLLS + 5; i++) watch(`t${i}`)
  expect(asking.length).toBe(MAX_POLLS)
  asking[3]!.answer({ isMet: true, result: null })
  await settled()
  expect(asking.length).toBe(MAX_POLLS + 1)
  for (let i = 0; i < MAX_POLLS + 5; i++) {
    asking[i]!.answer({ isMet: true, result: null })
    await settled()
  }
  expect(met.length).toBe(MAX_POLLS + 5)
})

test('a look without an answer ends after POLL_TIMEOUT_MS, and another one follows', async () => {
  const { asking, watch } = world()
  const task = watch('a', { backoff: { initial_ms: 100 } })
  jest.advanceTimersByTime(POLL_TIMEOUT_MS)
  await settled()
  expect([asking[0]!.signal.aborted, task.rare.unmet]).toEqual([true, `no answer within ${POLL_TIMEOUT_MS} ms`])
  jest.advanceTimersByTime(200)
  expect(asking.length).toBe(2)
})

test('a task that has ended is not looked at any more, and an answer that comes late says nothing', async () => {
  const { looks, asking, met, faults, watch } = world()
  const task = watch('a')
  looks.withdraw(task)
  expect(asking[0]!.signal.aborted).toBe(true)
  asking[0]!.answer({ isMet: true, result: 1 })
  await settled()
  expect([met, faults, task.rare.unmet]).toEqual([[], [], undefined])
  jest.advanceTimersByTime(120_000)
  expect(asking.length).toBe(1)

  const other = watch('b')
  asking[1]!.answer({ isMet: false, why: 'not yet' })
  await settled()
  expect(other.rare.unmet).toBe('not yet')
  looks.withdraw(other)
  expect([other.rare.unmet, jest.getTimerCount()]).toEqual([undefined, 1]) // that of the queue of pauses
  jest.advanceTimersByTime(120_000)
  expect([asking.length, jest.getTimerCount()]).toEqual([2, 0])
})

test('an error of a look fails its task, and nothing else', async () => {
  const { looks, asking, faults, defects, watch } = world()
  watch('a')
  watch('b')
  asking[0]!.fail(new ExecutionError('denied', 'no'))
  await settled()
  expect(faults).toMatchObject([['a', { code: 'denied', message: 'no' }]])
  asking[1]!.fail(new TypeError('a bug'))
  await settled()
  expect(faults[1]).toMatchObject(['b', { code: 'internal' }])
  expect(defects).toEqual([])
  looks.stop()
})
