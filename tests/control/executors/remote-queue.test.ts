/** What control says of a task in the queue of a runtime service. */
import { expect, test } from 'bun:test'
import { RemoteQueue } from '../../../control/executors/runtime/remote-queue.ts'

test.each([
  [{ resource: 'turn' }, 'waiting for its turn'],
  [{ resource: 'pids' }, 'waiting for pids'],
  [{ resource: 'task_slots', tenant: 't' }, 'waiting for task_slots of the quota of tenant "t"'],
  [{ resource: 'sandbox_uid' }, 'waiting for a free user id for its sandbox (--sandbox-uids)'],
])('of %j it says: %s', async (waiting_for, words) => {
  const queue = new RemoteQueue({ queued: async () => ({ tasks: [{ task_id: 'a', waiting_for }] }) as never })
  expect((await queue.look())?.('a')).toBe(words)
})
