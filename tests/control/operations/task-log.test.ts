/** Goal: the limit on followers holds, and whoever leaves makes room. Method: followers of a task that never begins. */
import { expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { MAX_LOG_FOLLOWERS, openTaskLog } from '../../../control/operations/task-log.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { acceptGraph } from '../../support/graph.ts'
import { operationParts } from '../../support/operation-parts.ts'

test('more followers than there may be get 503, until one leaves', async () => {
  const store = new TaskStore()
  acceptGraph(store, [{ id: 'a', type: 'noop' }])
  const parts = operationParts({
    ...{ store, executors: new ExecutorRegistry(), scheduler: { outputOf: () => undefined } },
    keeper: { kept: () => undefined, results: { read: async () => ({ lost: 'lost' }) } },
  })
  const follow = (signal: AbortSignal, isFollowing = true) =>
    openTaskLog(
      parts,
      { id: 'a' },
      { stream: 'stdout', start: { offset: 0 }, followUntil: isFollowing ? 'task ended' : undefined },
      { signal, traceId: '' },
    )
  const [one, others, last] = [new AbortController(), new AbortController(), new AbortController()]
  const first = follow(one.signal)
  const open = Array.from({ length: MAX_LOG_FOLLOWERS - 1 }, () => follow(others.signal))
  const refused = await follow(last.signal).catch((error) => error)
  expect([refused.status, refused.message]).toEqual([
    ...[503, '10000 logs are followed already: try again later, or without follow'],
  ])
  expect((await follow(last.signal, false)).status).toBe('pending')
  one.abort()
  expect(await (await first).next()).toBeUndefined()
  open.push(follow(last.signal))
  others.abort()
  last.abort()
  expect((await Promise.all(open)).length).toBe(MAX_LOG_FOLLOWERS)
})
