/** `--max-stored-tasks` is of all replicas together: a takeover changes nothing of it. Source: docs/cluster.md. */
import { expect, test } from 'bun:test'
import type { Control } from '../support/control.ts'
import { describeReplicas, owns } from '../support/replicas.ts'
import { until } from '../support/until.ts'

const sleep = (id: string) => ({ id, type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } })
const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

describeReplicas('the capacity of a cluster', (cluster) => {
  const ids = async (control: Control) =>
    ((await (await control.fetch('/tasks')).json()) as { readonly id: string }[]).map(({ id }) => id).sort()

  /** Ended tasks, each in a graph of its own, one after the other. */
  async function end(control: Control, names: readonly string[]): Promise<void> {
    for (const name of names) {
      await control.submit([noop(name)])
      await control.ended(name)
    }
  }

  const holds = (control: Control, expected: readonly string[]) =>
    until(
      () => ids(control),
      (seen) => seen.join() === [...expected].sort().join(),
      { patienceMs: 50_000 },
    )

  test('the oldest ended graphs of all go, wherever they are, and a takeover removes none', async () => {
    using each = await cluster()
    const flags = ['--max-stored-tasks', '8']
    await using first = await each.replica(flags)
    await using second = await each.replica(flags)
    await end(first, ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'])
    await end(second, ['b1', 'b2', 'b3', 'b4', 'b5', 'b6'])
    const left = ['a5', 'a6', 'b1', 'b2', 'b3', 'b4', 'b5', 'b6']
    await holds(second, left)
    expect(await ids(first)).toEqual(left)
    await first.stop('SIGKILL')
    await owns(second, left.length)
    expect(await ids(second)).toEqual(left)
    await second.submit([sleep('next')])
    await holds(second, ['a6', 'b1', 'b2', 'b3', 'b4', 'b5', 'b6', 'next'])
    await using third = await each.replica(flags)
    await end(third, ['c1', 'c2'])
    await holds(third, ['b2', 'b3', 'b4', 'b5', 'b6', 'next', 'c1', 'c2'])
  })

  test('graphs that have not ended leave as much room after a takeover as before', async () => {
    using each = await cluster()
    const flags = ['--max-stored-tasks', '5']
    await using first = await each.replica(flags)
    await using second = await each.replica(flags)
    await first.submit(['a1', 'a2', 'a3'].map(sleep))
    await until(
      () => each.server.run('select sum(stored_tasks)::int as tasks from taskmill.replica', each.database),
      ([row]) => (row as { tasks: number }).tasks === 3,
    )
    await end(second, ['look']) // its turn tells of the tasks of the first replica
    const refused = await second.post({ tasks: ['b1', 'b2', 'b3'].map(sleep) })
    expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('hold 3 of at most 5')])
    await second.submit([sleep('b1'), sleep('b2')])
    await first.stop('SIGKILL')
    await owns(second, 2)
    expect(await ids(second)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2'])
    expect((await second.post({ tasks: [noop('c')] })).status).toBe(503)
    await second.fetch('/tasks/b1/cancel', { method: 'POST' })
    await second.fetch('/tasks/b2/cancel', { method: 'POST' })
    await until(
      () => second.post({ tasks: [noop('c')] }),
      ({ status }) => status === 202,
    )
  })
})
