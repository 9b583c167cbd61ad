/** Two clusters on one database: by schema, or not at all. Source: docs/cluster.md, "Several clusters on one database". */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { type Cluster, describeReplicas, LONG_LEASE } from '../support/replicas.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

async function run(args: readonly string[]) {
  const child = Bun.spawn([await builtProgram('taskmill-control'), ...args], {
    ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

/** A start that is refused. */
async function refused(each: Cluster, flags: readonly string[]): Promise<string> {
  using dir = tempDir()
  const args = ['--addr', '127.0.0.1:0', '--data-dir', join(dir.path, 'data'), ...each.flags, ...flags]
  const { exitCode, stderr } = await run(args)
  expect(exitCode).toBe(2)
  return stderr
}

describeReplicas('several clusters on one database', (cluster) => {
  test('the name of a cluster stays, and refuses others', async () => {
    using each = await cluster()
    {
      await using unnamed = await each.replica(LONG_LEASE)
      await unnamed.submit([noop('a')])
      expect(await unnamed.stop()).toBe(0)
    }
    {
      await using first = await each.replica([...LONG_LEASE, '--cluster', 'blue'])
      expect((await first.fetch('/tasks/a')).status).toBe(200)
      await using second = await each.replica([...LONG_LEASE, '--cluster', 'blue'])
      expect((await second.fetch('/tasks/a')).status).toBe(200)
      expect(await refused(each, ['--cluster', 'green'])).toContain(
        'belongs to the cluster blue, and this service to the cluster green',
      )
    }
    expect(await refused(each, [])).toContain(
      'belongs to the cluster blue, and this service to no cluster: give --cluster blue',
    )
    for (const flags of [
      ['--cluster', 'a b'],
      ['--database-schema', 'Mill'],
      ['--database-schema', 'a"b'],
      ['--database-schema', 'user'],
      ['--database-schema', 'pg_mill'],
    ])
      expect(await refused(each, flags)).toContain(flags[0]!)
  })

  test('each schema has a cluster of its own', async () => {
    using each = await cluster()
    const flags = [...LONG_LEASE, '--database-schema', 'mill_2']
    await using first = await each.replica(LONG_LEASE)
    await using other = await each.replica([...flags, '--cluster', 'green'])
    await first.submit([noop('same')])
    const { graph_id } = await other.submit([noop('same')])
    expect(await (await other.fetch('/tasks/same?wait_ms=10000')).json()).toMatchObject({ graph_id, status: 'success' })
    expect((await first.fetch(`/graphs/${graph_id}`)).status).toBe(404)
    const tables = `select table_schema as name, count(*)::int as tables from information_schema.tables
      where table_schema in ('taskmill', 'mill_2') group by 1 order by 1`
    const [one, two] = (await each.server.run(tables, each.database)) as { name: string; tables: number }[]
    expect([one!.name, two!.name, one!.tables]).toEqual(['mill_2', 'taskmill', two!.tables])
    const { stdout, exitCode } = await run([
      'database',
      'check',
      ...each.flags.slice(0, 2),
      '--database-schema',
      'mill_2',
    ])
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('"ok":true')])
    expect(await other.stop()).toBe(0)
    await using next = await each.replica([...flags, '--cluster', 'green'])
    await next.ended('same')
  })
})
