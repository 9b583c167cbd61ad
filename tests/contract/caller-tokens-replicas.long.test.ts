/** Callers with names and rights where another replica has the graph. Source: docs/security.md. */
import { expect, test } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { connectClient } from '../support/mcp-client.ts'
import { describeReplicas, LONG_LEASE } from '../support/replicas.ts'
import { tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const SERVICE = { authorization: 'Bearer sesame' }

describeReplicas('callers of several replicas', (cluster) => {
  test('are the same to the replica that has the graph, and nobody says so but a replica', async () => {
    using each = await cluster()
    const people = {
      ada: { rights: ['read', 'submit', 'answer', 'cancel_own'] },
      bob: { rights: ['read', 'answer', 'cancel_own'] },
      eve: { rights: ['read', 'submit'] },
    } as const
    using tokens = tokensFile(people)
    const replica = () => each.replica([...LONG_LEASE, '--tokens-file', tokens.path], { SERVICE_TOKEN: 'sesame' })
    const [first, second] = await Promise.all([replica(), replica()])
    await using _ = first
    await using __ = second
    const { graph_id } = await first.submit([{ id: 'sure', type: 'approval' }], tokens.as('ada'))
    const read = async () =>
      (await (await second.fetch('/tasks/sure', { headers: tokens.as('bob') })).json()) as TaskRecord
    await until(read, ({ waiting }) => waiting?.reason === 'approval')
    const graph = await second.fetch(`/graphs/${graph_id}`, { headers: tokens.as('bob') })
    expect(await graph.json()).toMatchObject({ submitted_by: 'ada' })

    const bob = encodeURIComponent(JSON.stringify({ name: 'bob', rights: people.bob.rights }))
    const answer = (headers: Record<string, string>) =>
      second.fetch('/tasks/sure/approve', { method: 'POST', headers, body: '{"who":"me"}' })
    for (const forged of [{}, { 'x-taskmill-caller': bob }, { 'x-taskmill-caller': bob, 'x-taskmill-hop': '1' }]) {
      expect([403, 503]).toContain((await answer({ ...tokens.as('ada'), ...forged })).status)
      expect((await answer({ ...tokens.as('eve'), ...forged })).status).toBe(403)
    }
    for (const [name, tool] of [
      ['ada', 'answer_approval'],
      ['eve', 'answer_approval'],
      ['eve', 'cancel'],
      ['bob', 'cancel'],
    ] as const) {
      await using mcp = await connectClient(second.url, 'auto', tokens.as(name))
      const named = tool === 'cancel' ? { graph_id } : { task_id: 'sure', approved: true, who: 'me' }
      expect([name, tool, (await mcp.call(tool, named)).isError]).toEqual([name, tool, true])
    }
    const foreign = await second.fetch('/tasks/sure/cancel', { method: 'POST', headers: tokens.as('bob') })
    expect(foreign.status).toBe(403)
    expect((await second.fetch('/replicas/tasks', { headers: tokens.as('ada') })).status).toBe(403)

    const streams = await Promise.all(
      ['/events', `/graphs/${graph_id}/events`].map((path) =>
        EventStreamClient.open(second.url + path, tokens.as('eve')),
      ),
    )
    tokens.put({ ada: people.ada, bob: people.bob })
    await Promise.all(streams.map((stream) => stream.ended()))
    expect((await read()).status).toBe('pending')

    const given = await answer(tokens.as('bob'))
    expect([given.status, await given.json()]).toMatchObject([200, { result: { token: 'bob' } }])
    const ofService = await second.fetch(`/graphs/${graph_id}`, { headers: SERVICE })
    expect(ofService.status).toBe(200)
  })

  test('need the token of the service beside the file: the start is refused without it', async () => {
    using each = await cluster()
    using tokens = tokensFile({})
    const start = each.replica([...LONG_LEASE, '--tokens-file', tokens.path])
    await expect(start).rejects.toThrow('--tokens-file with --database needs --token-file')
  })
})
