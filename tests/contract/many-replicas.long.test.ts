/** A database goes on after 99,999 replicas and takeovers. */
import { expect, test } from 'bun:test'
import { describeReplicas, owns } from '../support/replicas.ts'
import { until } from '../support/until.ts'

const sleep = (id: string) => ({ id, type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } })

describeReplicas('a database that has had 99,999 replicas', (cluster) => {
  test('starts and takeovers go on, and so do lists and events', async () => {
    using each = await cluster()
    {
      await using early = await each.replica()
      await early.submit([sleep('early')])
      await early.stop('SIGKILL')
    }
    await each.server.run(`select setval(pg_get_serial_sequence('taskmill.replica', 'id'), 99998)`, each.database)
    await using last = await each.replica()
    await owns(last, 1)
    await last.submit([sleep('last')])
    await using first = await each.replica()
    await first.submit([sleep('first')])
    await using second = await each.replica()
    await second.submit([sleep('second')])
    for (const gone of [last, first]) {
      const { graph_id } = (await (await gone.fetch(`/tasks/${gone === last ? 'last' : 'first'}`)).json()) as {
        graph_id: string
      }
      await gone.stop('SIGKILL')
      await until(
        () => second.fetch(`/graphs/${graph_id}`).then(({ status }) => status),
        (status) => status === 200,
        { patienceMs: 50_000 },
      )
    }
    await owns(second, 4)
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const page = await second.fetch(`/tasks?limit=1${cursor}`)
      expect(page.status).toBe(200)
      seen.push(...((await page.json()) as { id: string }[]).map(({ id }) => id))
      const next = page.headers.get('x-next-cursor')
      if (next === null) break
      cursor = `&cursor=${next}`
    }
    expect(seen.sort()).toEqual(['early', 'first', 'last', 'second'])
    const graphs = await second.fetch('/graphs?limit=1')
    const more = await second.fetch(`/graphs?limit=10&cursor=${graphs.headers.get('x-next-cursor')}`)
    expect((await more.json()) as object[]).toHaveLength(3)
    const { graph_id } = (await (await second.fetch('/tasks/first')).json()) as { graph_id: string }
    const position = (await second.fetch(`/graphs/${graph_id}`)).headers.get('x-event-seq')
    expect(Number(position)).toBeGreaterThan(1e15)
    const stream = await second.fetch(`/graphs/${graph_id}/events?until=ended&after=${position}`)
    await second.fetch(`/graphs/${graph_id}/cancel`, { method: 'POST' })
    const text = await stream.text()
    expect(text).toContain('graph_ended')
    expect(text).not.toContain('event: reset')
  })
})
