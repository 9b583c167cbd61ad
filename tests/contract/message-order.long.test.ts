/**
 * Goal: no message to a runtime service comes before the commit that it follows. Source: docs/design.md, "Messages to
 * runtime services".
 * Method: a replica loses its database while a message is due, and another one takes over.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { startCuttingLink } from '../support/cutting-link.ts'
import { describeReplicas, healthOf, LEASE_MS } from '../support/replicas.ts'
import { startRuntime } from '../support/runtime.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

describeReplicas('a replica whose database is frozen', (newCluster) => {
  /** A replica whose link to the database can be held, and a healthy one. */
  async function pair(use: (at: Awaited<ReturnType<typeof start>>) => Promise<void>) {
    await using stack = new AsyncDisposableStack()
    await use(await start(stack))
  }

  async function start(stack: AsyncDisposableStack) {
    const each = stack.use(await newCluster())
    const runtime = stack.use(await startRuntime())
    const temp = stack.use(tempDir())
    const url = each.server.url(each.database)
    const link = stack.use(await startCuttingLink(Number(new URL(url).port)))
    const file = join(temp.path, 'database')
    writeFileSync(file, link.through(url))
    const flags = ['--lease', `${LEASE_MS}ms`, '--shutdown-timeout', '0s', '--runtime-url', runtime.url]
    const cut = stack.use(await startControl({ flags: ['--database-file', file, ...flags] }))
    const healthy = stack.use(await each.replica(flags))
    const [ran, go] = [join(temp.path, 'ran'), join(temp.path, 'go')]
    const script = `echo ran >> ${ran}; until [ -e ${go} ]; do sleep 0.05; done`
    const { graph_id } = await cut.submit([{ id: 'r', type: 'runtime.script', retry: 1, params: { script } }])
    await until(() => Bun.file(ran).exists())
    return { link, runtime, cut, healthy, graph_id, go, ran }
  }

  const statusAt = async (runtime: { fetch(path: string): Promise<Response> }, id: string) => {
    const response = await runtime.fetch(`/api/v1/tasks/${id}`)
    return response.status === 404 ? 'gone' : ((await response.json()) as { readonly status: string }).status
  }

  const adopted = (healthy: Control) =>
    until(
      async () => (await healthy.fetch('/metrics', { headers: { accept: 'text/plain' } })).text(),
      (metrics) => metrics.includes('service_control_replica_adopted_graphs_total 1\n'),
      { patienceMs: 50_000 },
    )

  test('removes no attempt whose end is not kept: it would run again where the graph is taken over', () =>
    pair(async ({ link, runtime, cut, healthy, graph_id, go, ran }) => {
      const id = `r-${graph_id}-1`
      await until(async () => (await cut.get('r')).handle_id, id)
      expect((await cut.fetch('/tasks/r', { method: 'DELETE' })).status).toBe(204)
      link.hold()
      writeFileSync(go, '')
      await until(
        () => statusAt(runtime, id),
        (status) => status !== 'running',
      )
      await adopted(healthy)
      await until(
        async () => [(await healthOf(healthy)).replica.graphs, await statusAt(runtime, id)],
        ([graphs, status]) => graphs === 0 && status === 'gone',
        { patienceMs: 50_000 },
      )
      expect(await Bun.file(ran).text()).toBe('ran\n')
    }))

  test('kills no attempt for a cancel that is not kept: it goes on where the graph is taken over', () =>
    pair(async ({ link, runtime, cut, healthy, graph_id, go, ran }) => {
      const id = `r-${graph_id}-1`
      await until(async () => (await cut.get('r')).handle_id, id)
      link.hold()
      expect((await cut.fetch('/tasks/r/cancel', { method: 'POST' })).status).toBe(503)
      await adopted(healthy)
      expect(await statusAt(runtime, id)).toBe('running')
      writeFileSync(go, '')
      expect(await healthy.ended('r')).toMatchObject({ status: 'success', attempt: 1 })
      expect(await Bun.file(ran).text()).toBe('ran\n')
    }))
})
