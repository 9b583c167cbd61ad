/**
 * GET /events at any replica of control: the events of the graphs of all.
 * Source: docs/cluster.md, docs/http.md.
 */
import { expect, test } from 'bun:test'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import type { Control } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { answered, describeReplicas, healthOf, LONG_LEASE, owns } from '../support/replicas.ts'
import { until } from '../support/until.ts'

const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

const held = (id: string) => ({ id, type: 'approval', params: { message: 'ok?' } })

const open = (control: Control, after?: string, headers: Record<string, string> = {}) =>
  EventStreamClient.open(`${control.url}/events${after === undefined ? '' : `?after=${after}`}`, headers)

/** Ends of graphs, with their numbers. */
const endsIn = (events: readonly ServiceEvent[]): string[] =>
  events.flatMap((event) => (event.event === 'graph_ended' ? [event.graph_id] : []))

/** Numbers that came twice, and events that follow none before them. `id`: of the event that the stream was resumed after. */
function faultsIn(events: readonly ServiceEvent[], id = ''): string[] {
  const last = new Set(id.split('-').map(Number))
  const faults: string[] = []
  const seen = new Set<number>()
  for (const { event, seq, previous } of events) {
    if (previous && !last.delete(previous)) faults.push(`${event} ${seq} follows ${previous}`)
    if (seen.has(seq)) faults.push(`${event} ${seq} comes twice`)
    seen.add(seq)
    last.add(seq)
  }
  return faults
}

const idOf = async (control: Control) => (await healthOf(control)).replica.id

describeReplicas('the events of all replicas', (cluster) => {
  /** Submits a graph that ends at once to each. Returns their ids. */
  const endAt = async (controls: readonly Control[], name: string) => {
    const answers = await Promise.all(controls.map((control, i) => control.submit([noop(`${name}${i}`)])))
    return answers.map(({ graph_id }) => graph_id)
  }

  test('come to a client of any of them, who resumes at another one without a gap or a repetition', async () => {
    using each = await cluster()
    const controls = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    const [first, second, third] = controls as [Control, Control, Control]
    await using _ = first
    await using __ = second
    await using ___ = third
    await using one = await open(first)
    await using other = await open(third)
    await Promise.all([one, other].map((client) => until(() => client.lastId)))
    const graphs = await endAt(controls, 'a')
    for (const client of [one, other]) {
      const events = await client.once((all) => endsIn(all).length === 3)
      expect(endsIn(events).sort()).toEqual([...graphs].sort())
      expect(faultsIn(events)).toEqual([])
    }
    await one[Symbol.asyncDispose]()
    const more = await endAt(controls, 'b')
    await using resumed = await open(second, undefined, { 'last-event-id': one.lastId! })
    const events = await resumed.once((all) => endsIn(all).length === 3)
    expect(endsIn(events).sort()).toEqual([...more].sort())
    await other.once((all) => endsIn(all).length === 6)
    const seqs = [...one.events, ...resumed.events].map(({ seq }) => seq).sort()
    expect(seqs).toEqual(other.events.map(({ seq }) => seq).sort())
    expect([...faultsIn(resumed.events, one.lastId), ...faultsIn(other.events)]).toEqual([])

    const lists = await Promise.all(['/graphs', '/tasks'].map((path) => third.fetch(path)))
    for (const list of lists) {
      await list.body?.cancel()
      await using after = await open(first, list.headers.get('x-event-seq')!)
      const [last] = await endAt([second], `after${lists.indexOf(list)}`)
      expect(endsIn(await after.once((all) => endsIn(all).includes(last!)))).not.toContain(more[0])
    }
    await using all = await open(third, '0')
    expect(endsIn(await all.once((past) => endsIn(past).length === 8))).toHaveLength(8)
    expect(faultsIn(all.events)).toEqual([])
    await until(() => all.lastId)

    const mark = resumed.lastId!
    const deleted = await first.fetch(`/graphs/${graphs[0]}`, { method: 'DELETE' })
    expect(deleted.status).toBe(204)
    const removals = (client: EventStreamClient) =>
      client.events.filter(({ event }) => event === 'graph_removed').length
    await until(() => removals(all), 1)
    await using again = await open(second, mark)
    await until(() => removals(again), 1)
    await endAt(controls, 'c')
    await again.once((past) => endsIn(past).length === 3)
    expect([removals(again), ...faultsIn(again.events, mark)]).toEqual([1])
  })

  test('are asked of each other once: a replica that asks gets those of the asked one alone', async () => {
    using each = await cluster()
    const controls = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    const [first, second] = controls as [Control, Control]
    await using _ = first
    await using __ = second
    await using own = await EventStreamClient.open(`${first.url}/replicas/events?after=0`, {})
    const [graph] = await endAt(controls, 'a')
    await second.ended('a1')
    expect(endsIn(await own.once((all) => endsIn(all).length > 0))).toEqual([graph!])
    expect((await first.fetch('/events?after=x')).status).toBe(400)
    expect((await first.fetch(`/events?after=${Array.from({ length: 300 }, (_, i) => i + 1).join('-')}`)).status).toBe(
      400,
    )
  })

  test('go on when a replica comes, and when one is killed: its graphs tell on from where they are then', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(), each.replica()])
    await using _ = first
    await using __ = second
    await using client = await open(first)
    await until(() => client.lastId)
    await using third = await each.replica()
    const [early] = await endAt([third], 'early')
    await client.once((all) => endsIn(all).includes(early!))
    const { graph_id } = await third.submit([held('ask'), { ...noop('then'), depends_on: ['ask'] }])
    const { lastId } = client
    await client.once((all) =>
      all.some(({ event, seq }) => event === 'task_changed' && seq > 0 && isAbout(all, graph_id)),
    )
    await third.stop('SIGKILL')
    const approve = { method: 'POST', body: '{"who":"ada"}' }
    expect((await answered(second, '/tasks/ask/approve', approve)).status).toBe(200)
    const isOver = (all: readonly ServiceEvent[]) => endsIn(all).includes(graph_id)
    await until(() => client.events, isOver, { patienceMs: 50_000 })
    expect(client.hasEnded).toBe(false)
    const [late] = await endAt([second], 'late')
    await client.once((all) => endsIn(all).includes(late!))
    // A client that was away meanwhile misses nothing, at either of the two.
    for (const control of [first, second]) {
      await using resumed = await open(control, lastId)
      const all = await until(() => resumed.events, isOver, { patienceMs: 50_000 })
      expect(all.filter(({ event }) => event === 'reset')).toEqual([])
      expect(statesOf(all, graph_id).get('then')).toBe('success')
      expect(statesOf(all, graph_id).get('ask')).toBe('success')
    }
    // The position of the one that is gone goes once it is not needed.
    await until(
      () => client.lastId!.split('-').length,
      (count) => count === 2,
      { patienceMs: 50_000 },
    )
  })

  test('of a replica that lives are all there after it has taken over graphs, also those of removed graphs', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(), each.replica()])
    await using _ = first
    await using __ = second
    await using client = await open(first)
    await until(() => client.lastId)
    const { lastId } = client
    const [removed] = await endAt([first], 'removed')
    await client.once((all) => endsIn(all).includes(removed!))
    expect((await first.fetch(`/graphs/${removed}`, { method: 'DELETE' })).status).toBe(204)
    await second.submit([held('ask')])
    await second.stop('SIGKILL')
    await owns(first, 1)
    const [last] = await endAt([first], 'last')
    await using resumed = await open(first, lastId)
    const isOver = (all: readonly ServiceEvent[]) =>
      endsIn(all).includes(last!) || all.some(({ event }) => event === 'reset')
    const all = await until(() => resumed.events, isOver, { patienceMs: 50_000 })
    expect(all.filter(({ event }) => event === 'reset')).toEqual([])
    expect(endsIn(all)).toEqual([removed!, last!])
  })

  test('begin with the present state of all graphs when the past of one replica is gone', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    await using _ = first
    await using __ = second
    const graphs = await endAt([first, second], 'a')
    await Promise.all([first.ended('a0'), second.ended('a1')])
    const [one, two] = [await idOf(first), await idOf(second)]
    // Nobody knows how far the client was with the second one.
    const list = (await first.fetch('/graphs')).headers.get('x-event-seq')!
    const own = list.split('-').find((seq) => Math.floor(Number(seq) / 10_000_000_000) === one)
    await using client = await open(first, `${own}-${two}`)
    const [reset] = await client.once((all) => all.length > 0)
    if (reset?.event !== 'reset') throw new Error(`${reset?.event} instead of reset`)
    expect((reset.graphs as { graph_id: string }[]).map(({ graph_id }) => graph_id).sort()).toEqual([...graphs].sort())
    expect(client.lastId!.split('-').length).toBe(2)
    const more = await endAt([first, second], 'b')
    expect(endsIn(await client.once((all) => endsIn(all).length === 2)).sort()).toEqual([...more].sort())
  })

  test('of the others go on while one hangs, which is heard again', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    await using _ = first
    await using __ = second
    const silent = await idOf(second)
    second.process.kill('SIGSTOP')
    await using client = await open(first)
    const [graph] = await endAt([first], 'a')
    await client.once((all) => endsIn(all).includes(graph!))
    const isKnown = (id: string | undefined) => id?.split('-').includes(String(silent)) === true
    await until(() => client.lastId, isKnown) // the client has no position in the events of that one
    second.process.kill('SIGCONT')
    const [other] = await endAt([second], 'b')
    const isTold = (all: readonly ServiceEvent[]) =>
      endsIn(all).includes(other!) ||
      all.some((event) => event.event === 'reset' && JSON.stringify(event.graphs).includes(other!))
    await until(() => client.events, isTold, { patienceMs: 50_000 })
  })
})

const isAbout = (events: readonly ServiceEvent[], graphId: string): boolean =>
  events.some((event) => event.event === 'task_changed' && event.graph_id === graphId)

const statesOf = (events: readonly ServiceEvent[], graphId: string): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) =>
      event.event === 'task_changed' && event.graph_id === graphId ? [[event.task_id, event.status] as const] : [],
    ),
  )
