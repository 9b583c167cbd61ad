/**
 * Schedules of replicas that share a database: every replica answers for them, each due time gets one graph, and who submits
 * them changes when a replica is killed or stops.
 */
import { expect, test } from 'bun:test'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import type { Schedule, ScheduleFile, ScheduleSummary } from '../../shared/contract/schedules.ts'
import { errorOf } from '../support/answers.ts'
import type { Control } from '../support/control.ts'
import { answered, type Cluster, describeReplicas, healthOf, LONG_LEASE } from '../support/replicas.ts'
import { place, YEARLY, yaml } from '../support/schedule-files.ts'
import { until } from '../support/until.ts'

const GRAPH = { tasks: [{ id: 'a', type: 'noop' }] }
const HELD = { tasks: [{ id: 'a', type: 'approval', params: {} }] }
const NEVER = { cron: '0 0 1 1 *' }

/** Milliseconds until another replica has taken over on a busy machine. */
const PATIENCE = { patienceMs: 60_000 }

const json = async <T>(response: Response): Promise<T> => (await response.json()) as T

const put = (control: Control, name: string, body: object) =>
  control.fetch(`/schedules/${name}`, { method: 'PUT', body: JSON.stringify(body) })

const call = (control: Control, name: string, verb: string) =>
  control.fetch(`/schedules/${name}/${verb}`, { method: 'POST' })

const get = async (control: Control, name: string): Promise<Schedule> =>
  json(await answered(control, `/schedules/${name}`))

const shown = (control: Control, name: string, isSo: (schedule: Schedule) => boolean) =>
  until(() => get(control, name), isSo, PATIENCE)

/** The due times of the graphs of a schedule, in order. */
async function duesOf(control: Control, name: string): Promise<number[]> {
  const graphs = await json<GraphSummary[]>(await answered(control, `/graphs?label=schedule=${name}&limit=1000`))
  return graphs.map(({ labels }) => Date.parse(labels!.due!)).sort((a, b) => a - b)
}

async function three(cluster: Cluster, flags: readonly string[] = []): Promise<[Control, Control, Control]> {
  const replicas = await Promise.all([1, 2, 3].map(() => cluster.replica(flags)))
  return replicas as [Control, Control, Control]
}

describeReplicas('schedules of replicas', (newCluster) => {
  test('each replica puts, shows, lists, pauses, resumes, triggers and deletes them', async () => {
    using cluster = await newCluster()
    const [a, b, c] = await three(cluster, LONG_LEASE)
    await using _a = a
    await using _b = b
    await using _c = c
    const made = await put(a, 'nightly', { ...NEVER, graph: GRAPH })
    expect(made.status).toBe(201)
    const schedule = await json<Schedule>(made)
    for (const replica of [a, b, c]) expect(await get(replica, 'nightly')).toEqual(schedule)
    const dry = await b.fetch('/schedules/nightly?dry_run=true', {
      method: 'PUT',
      body: JSON.stringify({ every: 60_000, graph: GRAPH }),
    })
    expect(await json<Schedule>(dry)).toMatchObject({ every: 60_000, created_at: schedule.created_at })
    expect(await json<Schedule>(await call(b, 'nightly', 'pause'))).toMatchObject({ paused: true, next: [] })
    expect(await get(c, 'nightly')).toMatchObject({ paused: true, cron: NEVER.cron })
    expect(await json<Schedule>(await call(c, 'nightly', 'resume'))).toMatchObject({ next: schedule.next })
    const ids: string[] = []
    for (const replica of [a, b, c]) {
      const triggered = await call(replica, 'nightly', 'trigger')
      expect(triggered.status).toBe(202)
      ids.push((await json<{ graph_id: string }>(triggered)).graph_id)
    }
    for (const replica of [a, b, c]) {
      const { runs } = await shown(replica, 'nightly', ({ running, runs }) => running === 0 && runs.length === 3)
      expect(runs.map(({ graph_id, state }) => [graph_id, state])).toEqual(
        ids.toReversed().map((id) => [id, 'success']),
      )
    }
    expect((await put(b, 'other', { ...NEVER, graph: GRAPH })).status).toBe(201)
    const listed = await json<ScheduleSummary[]>(await c.fetch('/schedules'))
    expect(listed.map(({ name }) => name)).toEqual(['nightly', 'other'])
    expect((await c.fetch('/schedules/nightly', { method: 'DELETE' })).status).toBe(204)
    for (const replica of [a, b, c]) expect((await replica.fetch('/schedules/nightly')).status).toBe(404)
    await until(
      async () => (await a.fetch('/metrics', { headers: { accept: 'text/plain' } })).text(),
      (text) => text.includes('service_control_schedules{state="active"} 1\n'),
    )
  })

  test('every: 1000 over three replicas, of which one is killed and one stops: each due time gets one graph', async () => {
    using cluster = await newCluster()
    const [a, b, c] = await three(cluster)
    await using _a = a
    await using _b = b
    await using _c = c
    const names = ['one', 'two', 'three', 'four']
    for (const [i, name] of names.entries()) {
      const body = { every: 1_000, overlap: i % 2 === 0 ? 'queue' : 'allow', catch_up: 'all', graph: GRAPH }
      expect((await put([a, b, c][i % 3]!, name, body)).status).toBe(201)
    }
    const all = async (control: Control, least: number) => {
      for (const name of names) await shown(control, name, ({ runs }) => runs.length >= least)
    }
    await all(a, 3)
    a.process.kill('SIGKILL')
    await a.process.exited
    const killed = Date.now()
    for (const name of names) await shown(b, name, ({ runs }) => Date.parse(runs[0]!.due ?? '') > killed)
    b.process.kill('SIGTERM')
    await b.process.exited
    const stopped = Date.now()
    for (const name of names) {
      await shown(c, name, ({ runs }) => Date.parse(runs[0]!.due ?? '') > stopped)
      await call(c, name, 'pause')
      const { missed, skipped, runs } = await shown(c, name, ({ running }) => running === 0)
      expect({ name, missed, skipped }).toEqual({ name, missed: 0, skipped: 0 })
      expect(runs.every(({ state }) => state === 'success')).toBe(true)
      const dues = await duesOf(c, name)
      for (let i = 1; i < dues.length; i++) expect(dues[i]! - dues[i - 1]!, `${name}: due time ${i}`).toBe(1_000)
    }
  }, 180_000)

  test('a graph at another replica counts as running: it holds up, is cancelled, and its end is noted', async () => {
    using cluster = await newCluster()
    const [a, b, c] = await three(cluster, LONG_LEASE)
    await using _a = a
    await using _b = b
    await using _c = c
    for (const overlap of ['skip', 'queue', 'cancel'] as const)
      await put(a, overlap, { ...NEVER, overlap, keep: 2, graph: HELD })
    const first: string[] = []
    for (const [i, name] of ['skip', 'queue', 'cancel'].entries()) {
      for (const replica of [a, b, c].toSpliced(i, 1)) {
        const { graph_id } = await json<{ graph_id: string }>(await call(replica, name, 'trigger'))
        first.push(graph_id)
      }
      const due = { every: 1_000, overlap: name, keep: 2, graph: HELD }
      expect((await put([a, b, c][i]!, name, due)).status).toBe(200)
    }
    await shown(b, 'skip', ({ skipped, running }) => skipped > 1 && running === 2)
    await shown(b, 'queue', ({ waiting, running }) => waiting > 1 && running === 2)
    const { runs } = await shown(b, 'cancel', ({ running, runs }) => running === 1 && runs.some(({ due }) => due))
    expect(runs.filter(({ state }) => state === 'cancelled').length).toBeGreaterThan(0)
    for (const id of first.slice(0, 4)) await b.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
    for (const name of ['skip', 'queue'])
      await shown(c, name, ({ runs }) => runs.some(({ due, state }) => due !== undefined && state === 'running'))
    // Of the ended graphs, two stay: those before are deleted, wherever they are.
    await until(
      async () => (await b.fetch(`/graphs/${first[4]}`)).status,
      (status) => status === 404,
      PATIENCE,
    )
  }, 120_000)

  test('of directories that differ, that of the oldest replica counts, until it is gone', async () => {
    using cluster = await newCluster()
    using first = place()
    using second = place()
    first.write('nightly.yaml', yaml(`{${YEARLY}, keep: 1}`))
    first.write('first.yaml', yaml(`{${YEARLY}}`))
    second.write('nightly.yaml', yaml(`{${YEARLY}, keep: 2}`))
    second.write('second.yaml', yaml(`{${YEARLY}}`))
    const filesOf = async (control: Control) => {
      const found = await json<ScheduleFile[]>(await answered(control, '/schedule-files'))
      return found.map(({ file, schedule, replica }) => [file, schedule, replica])
    }
    const areFilesOf = async (control: Control, { replica }: { replica: { id: number } }, other: string) => {
      const files = [[`${other}.yaml`, other, replica.id] as const, ['nightly.yaml', 'nightly', replica.id] as const]
      const expected = files.toSorted(([a], [b]) => (a < b ? -1 : 1))
      await until(
        () => filesOf(control),
        (found) => Bun.deepEquals(found, expected),
        PATIENCE,
      )
    }
    const puts = ({ log }: Control) => log.filter(({ msg }) => msg === 'a schedule is from its file').length
    await using a = await cluster.replica(['--schedules-dir', first.files])
    const ofA = await healthOf(a)
    await areFilesOf(a, ofA, 'first')
    await using b = await cluster.replica(['--schedules-dir', second.files])
    await using c = await cluster.replica()
    for (const each of [b, c]) await areFilesOf(each, ofA, 'first')
    for (const each of [a, b, c])
      await until(
        () => healthOf(each),
        ({ replica }) => replica.schedules_dir_of === ofA.replica.id,
      )
    const refusal = '409 schedule nightly is that of the file nightly.yaml: change the file, or remove it'
    for (const each of [a, b, c])
      expect(await errorOf(await put(each, 'nightly', { ...NEVER, graph: GRAPH }))).toBe(refusal)
    const paused = await json<Schedule>(await call(c, 'nightly', 'pause'))
    expect(paused).toMatchObject({ keep: 1, paused: true, file: 'nightly.yaml' })
    second.write('nightly.yaml', yaml(`{${YEARLY}, keep: 3}`)) // is not looked at
    first.write('nightly.yaml', yaml(`{${YEARLY}, keep: 4}`))
    await shown(b, 'nightly', ({ keep }) => keep === 4)
    expect([puts(a), puts(b)]).toEqual([3, 0])
    // As by a replica that has not learnt yet that its directory does not count.
    const ofOther = `regexp_replace(definition, '"keep":4(.*)"digest":"[^"]*"', '"keep":9\\1"digest":"0"')`
    await cluster.server.run(
      `with c as (update taskmill.schedule_change set changes = changes + 1)
       update taskmill.schedule set definition = ${ofOther}, version = version + 1 where name = 'nightly'`,
      cluster.database,
    )
    expect(await get(c, 'nightly')).toMatchObject({ keep: 9 })
    await shown(b, 'nightly', ({ keep }) => keep === 4)
    expect([puts(a), puts(b)]).toEqual([4, 0])

    a.process.kill('SIGKILL')
    await a.process.exited
    const ofB = await healthOf(b)
    for (const each of [b, c]) await areFilesOf(each, ofB, 'second')
    expect(await shown(c, 'nightly', ({ keep }) => keep === 3)).toMatchObject({
      ...{ paused: true, created_at: paused.created_at, file: 'nightly.yaml' },
    })
    await until(
      () => c.fetch('/schedules/first'),
      ({ status }) => status === 404,
    )
    expect(puts(b)).toBe(2)
    expect(await b.stop()).toBe(0)
    await until(
      () => put(c, 'nightly', { ...NEVER, graph: GRAPH }),
      ({ status }) => status === 200,
      PATIENCE,
    )
    expect(await get(c, 'nightly')).not.toHaveProperty('file')
  }, 180_000)

  test('of changes at the same time the last one counts, as a whole', async () => {
    using cluster = await newCluster()
    const [a, b, c] = await three(cluster, LONG_LEASE)
    await using _a = a
    await using _b = b
    await using _c = c
    const replicas = [a, b, c]
    const bodyOf = (i: number) => ({ every: 1_000 * (i + 1), params: { n: i }, graph: { ...GRAPH, name: `n${i}` } })
    for (let round = 0; round < 10; round++) {
      const changes = replicas.flatMap((replica, i) => [
        put(replica, 'x', bodyOf(i)),
        call(replica, 'x', 'pause'),
        call(replica, 'x', 'trigger'),
        ...(round % 3 === 2 ? [replica.fetch('/schedules/x', { method: 'DELETE' })] : []),
      ])
      for (const { status } of await Promise.all(changes)) expect([200, 201, 202, 204, 404]).toContain(status)
      expect((await put(replicas[round % 3]!, 'x', bodyOf(round % 3))).status).toBeLessThan(300)
      for (const replica of replicas) {
        const { every, params, graph, paused } = await get(replica, 'x')
        const { every: last, ...rest } = bodyOf(round % 3)
        expect({ every, params, graph, paused }).toEqual({ every: last, ...rest, paused: false })
      }
    }
    await call(a, 'x', 'pause')
    const dues = await duesOf(c, 'x').then((all) => all.filter(Number.isFinite))
    expect(new Set(dues).size).toBe(dues.length)
  }, 60_000)
})
