/**
 * Calls that look beyond one graph, at any replica of control: of its MCP server, by tasks that poll, and lists.
 * Source: docs/cluster.md.
 */
import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import type { Control } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { describeReplicas, healthOf, LONG_LEASE } from '../support/replicas.ts'

const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

const held = (id: string) => ({ id, type: 'approval', params: { message: 'ok?' } })

describeReplicas('calls at any replica', (cluster) => {
  test('list_tasks shows the tasks of all, the newest first, in pages and with all counts', async () => {
    using each = await cluster()
    const controls = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    const [first, second, third] = controls as [Control, Control, Control]
    await using _ = first
    await using __ = second
    await using ___ = third
    const ids: string[] = []
    for (let i = 0; i < 7; i++) {
      ids.unshift(`a${i}`)
      await controls[i % 3]!.submit([noop(`a${i}`)])
      await controls[i % 3]!.ended(`a${i}`)
      await Bun.sleep(2) // another millisecond of creation
    }
    ids.unshift('ask')
    await first.submit([held('ask')])
    for (const control of controls) {
      await using mcp = await connectClient(control.url)
      const { data } = await mcp.call('list_tasks')
      expect(data.tasks.map(({ id }: { id: string }) => id)).toEqual(ids)
      expect(data.counts).toEqual({ success: 7, pending: 1 })
      const found: string[] = []
      for (let cursor: string | undefined, pages = 0; pages < 3; pages++) {
        const page = (await mcp.call('list_tasks', { limit: 3, ...(cursor !== undefined && { cursor }) })).data
        expect(page.counts).toEqual({ success: 7, pending: 1 })
        found.push(...page.tasks.map(({ id }: { id: string }) => id))
        cursor = page.next_cursor
        expect(cursor === undefined).toBe(pages === 2)
      }
      expect(found).toEqual(ids)
      const pending = (await mcp.call('list_tasks', { status: 'pending' })).data
      expect([pending.tasks.length, pending.counts]).toEqual([1, { pending: 1 }])
      expect((await mcp.call('list_tasks', { cursor: '1-1' })).isError).toBe(true)
    }
    const { replica } = await healthOf(third)
    third.process.kill('SIGSTOP')
    await using mcp = await connectClient(second.url)
    const { data } = await mcp.call('list_tasks')
    third.process.kill('SIGCONT')
    expect([data.missing_replicas, data.counts]).toEqual([[replica.id], { success: 5, pending: 1 }])
  })

  test('submit_graph and rerun_graph that are repeated elsewhere tell the states of the tasks', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    await using _ = first
    await using __ = second
    await using one = await connectClient(first.url)
    await using two = await connectClient(second.url)
    const graph = { scope: 'graph', tasks: [noop('a'), held('b')], idempotency_key: 'k' }
    const { data: submitted } = await one.call('submit_graph', graph)
    const waited = await two.call('submit_graph', { ...graph, wait_ms: 5_000 })
    expect(waited.data ?? waited.text).toMatchObject({
      ...submitted,
      all_terminal: false,
      counts: { success: 1, pending: 1 },
    })
    const approve = { method: 'POST', body: '{"who":"ada"}' }
    await second.fetch(`/graphs/${submitted.graph_id}/tasks/b/reject`, approve)
    const again = (await two.call('submit_graph', { ...graph, wait_ms: 20_000 })).data
    expect(again).toMatchObject({ ...submitted, all_terminal: true, counts: { success: 1, failed: 1 } })
    expect(again.tasks.map(({ id }: { id: string }) => id)).toEqual(submitted.task_ids.toReversed())
  })

  test('a task that polls a call finds it where it is', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    await using _ = first
    await using __ = second
    const body = JSON.stringify({ id: 'call', tool_name: 'builtin/echo', input: { message: 'hello' } })
    expect((await first.fetch('/mcp/call', { method: 'POST', body })).status).toBe(202)
    await first.ended('call')
    const poll = (id: string, handle_id: string) => ({ id, type: 'mcp', tool_name: 'poll', input: { handle_id } })
    await second.submit([poll('there', 'call'), poll('nowhere', 'none')])
    expect(await second.ended('there')).toMatchObject({
      status: 'success',
      result: { handle_id: 'call', status: 'success', output: { echo: { message: 'hello' } } },
    })
    expect(await second.ended('nowhere')).toMatchObject({ status: 'failed', error: 'handle not found: none' })
  })

  test('lists name a replica that nobody reaches, and GET /runtime shows it without an address', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    await using _ = first
    await using __ = second
    await second.submit([noop('a')])
    await second.ended('a')
    const { replica } = await healthOf(second)
    const sql = new SQL(each.server.url(each.database), { max: 1 })
    await sql`update taskmill.replica set address = '' where id = ${replica.id}` // as one on a Unix socket has it
    await sql.close()
    for (const path of ['/tasks', '/graphs']) {
      const list = await first.fetch(path)
      expect([list.headers.get('x-missing-replicas'), await list.json()]).toEqual([String(replica.id), []])
    }
    await using mcp = await connectClient(first.url)
    for (const list of ['list_tasks', 'list_graphs'])
      expect((await mcp.call(list)).data).toMatchObject({ missing_replicas: [replica.id] })
    const { replicas } = (await (await first.fetch('/runtime')).json()) as { replicas: { id: number; url?: string }[] }
    expect(replicas.map(({ id, url }) => [id, url])).toEqual(
      replicas.map(({ id }) => [id, id === replica.id ? undefined : first.url]),
    )
    expect(replicas.length).toBe(2)
  })
})
