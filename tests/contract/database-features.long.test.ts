/** What needs more than graphs and states is kept in the database, too, over a takeover. Source: docs/cluster.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import type { RerunResponse } from '../../shared/contract/rerun.ts'
import type { Control } from '../support/control.ts'
import { EventStreamClient, eventsIn } from '../support/event-stream.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { accepted, startReceiver } from '../support/receiver.ts'
import { cluster, owns } from '../support/replicas.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()
const withPostgres = missing === undefined ? describe : describe.skip
const title = (text: string) => (missing === undefined ? text : `${text} (${missing})`)

const OPEN = { SERVICE_SHELL_POLICY: 'open' }

/** A task whose result is kept outside of memory. */
const large = (id: string, more: object = {}) => ({
  ...{ id, type: 'shell', params: { script: 'seq 30000' } },
  ...more,
})

const graphIdOf = async (answer: Response): Promise<string> => {
  const body = (await answer.json()) as { graph_id: string }
  expect([answer.status, body]).toEqual([202, expect.anything()])
  return body.graph_id
}

withPostgres(title('control on a database'), () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })

  const count = async (table: string, database: string) =>
    (await postgres.run(`select count(*)::int as n from taskmill.${table}`, database))[0]!.n

  describe('a callback', () => {
    const ANY = ['--callback-policy', 'any']
    const idsOf = ({ received }: { readonly received: readonly { readonly headers: Headers }[] }) =>
      received.map(({ headers }) => headers.get('x-taskmill-delivery'))

    test('that was not delivered yet is delivered after a takeover, also of a graph that is gone', async () => {
      using each = await cluster([postgres])
      let isOpen = false
      await using receiver = startReceiver(() => (isOpen ? accepted() : new Response(null, { status: 500 })))
      await using first = await each.replica(ANY)
      const [kept, gone] = [await submit(first, 'kept', receiver.url), await submit(first, 'gone', receiver.url)]
      await receiver.has(2)
      expect((await first.fetch(`/graphs/${gone}`, { method: 'DELETE' })).status).toBe(204)
      await until(() => count('callback', each.database), 2)
      await first.stop('SIGKILL')
      isOpen = true
      const before = receiver.received.length
      await using second = await each.replica(ANY)
      await receiver.has(before + 2)
      expect(new Set(idsOf({ received: receiver.received.slice(before) }))).toEqual(
        new Set([`${kept}-graph_ended`, `${gone}-graph_ended`]),
      )
      expect(await second.stop()).toBe(0)
    })

    test('that was delivered is not delivered again after a takeover', async () => {
      using each = await cluster([postgres])
      await using receiver = startReceiver()
      await using first = await each.replica(ANY)
      const graphId = await submit(first, 'a', receiver.url)
      await receiver.has(1)
      await until(
        async () =>
          (await postgres.run('select id from taskmill.callback where delivery is null', each.database)).length,
        1,
      )
      await first.stop('SIGKILL')
      await using second = await each.replica(ANY)
      const next = await submit(second, 'b', receiver.url)
      await receiver.has(2)
      expect(idsOf(receiver)).toEqual([`${graphId}-graph_ended`, `${next}-graph_ended`])
      expect(await second.stop()).toBe(0)
    })

    test('whose moment nobody could keep is made up for by the next replica', async () => {
      using each = await cluster([postgres])
      await using receiver = startReceiver()
      await using first = await each.replica(ANY)
      const graphId = await submit(first, 'a', receiver.url)
      await receiver.has(1)
      await first.stop('SIGKILL')
      await postgres.run('delete from taskmill.callback', each.database) // as if it had been killed a moment earlier
      await using second = await each.replica(ANY)
      await receiver.has(2)
      expect(idsOf(receiver)).toEqual([`${graphId}-graph_ended`, `${graphId}-graph_ended`])
      expect(await second.stop()).toBe(0)
    })

    async function submit(control: Control, id: string, url: string): Promise<string> {
      return graphIdOf(await control.post({ callback: { url }, tasks: [{ id, type: 'os', tool_name: 'noop' }] }))
    }
  })

  describe('an event stream', () => {
    const noop = (id: string, more: object = {}) => ({ id, type: 'os', tool_name: 'noop', ...more })
    const graphOf = (event: ServiceEvent) => ('graph_id' in event ? event.graph_id : undefined)
    /** Without the number of the event before, which may be one of a graph that is gone. */
    const contentOf = (events: readonly ServiceEvent[]) =>
      events.map(({ previous: _, ...event }) => event as ServiceEvent)

    test('goes on after a takeover where it was cut off, of all graphs and of one', async () => {
      using each = await cluster([postgres])
      await using first = await each.replica([], OPEN)
      await using watching = await EventStreamClient.open(`${first.url}/events`)
      const kept = await graphIdOf(
        await first.post({
          scope: 'graph',
          name: 'kept',
          tasks: [
            noop('map', { for_each: [1, 2, 3] }),
            { id: 'bad', type: 'shell', params: { script: 'exit 3' }, depends_on: ['map'] },
            noop('skipped', { depends_on: ['bad'] }),
          ],
        }),
      )
      await watching.once((events) => events.some(({ event }) => event === 'graph_ended'))
      const middle = watching.events[2]!.seq
      const gone = await graphIdOf(await first.post({ scope: 'graph', tasks: [noop('a')] }))
      await watching.once((events) => events.filter(({ event }) => event === 'graph_ended').length === 2)
      expect((await first.fetch(`/graphs/${gone}`, { method: 'DELETE' })).status).toBe(204)
      await first.submit([
        { id: 'held', type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } },
        noop('deleted', { depends_on: ['held'] }),
      ])
      await first.fetch('/tasks/deleted', { method: 'DELETE' })
      const told = contentOf(
        await watching.once((events) =>
          ['task_deleted', 'graph_removed'].every((name) => events.some(({ event }) => event === name)),
        ),
      )
      await first.stop('SIGKILL')

      await using second = await each.replica([], OPEN)
      await owns(second, 2)
      await using again = await EventStreamClient.open(`${second.url}/events`, { 'last-event-id': String(middle) })
      const running = (event: ServiceEvent) => event.event === 'task_changed' && event.attempt === 2
      const seen = contentOf(await again.once((events) => events.some(running)))
      const isKept = (event: ServiceEvent) => graphOf(event) !== gone || event.event === 'graph_removed'
      const expected = told.filter((event) => event.seq > middle && isKept(event))
      expect(seen.slice(0, expected.length)).toEqual(expected)
      expect(seen.slice(expected.length).every(({ seq }) => seq > told.at(-1)!.seq)).toBe(true)

      const path = `/graphs/${kept}/events?until=ended&after=0`
      const ofOne = eventsIn(await (await second.fetch(path)).text())
      expect(contentOf(ofOne)).toEqual(told.filter((event) => graphOf(event) === kept))
      const ofGone = eventsIn(await (await second.fetch(`/graphs/${gone}/events?after=${middle}`)).text())
      expect(ofGone.map(({ event }) => event)).toEqual(['graph_removed'])
      await second.stop('SIGKILL')

      await using third = await each.replica([], OPEN)
      await owns(third, 2)
      await using last = await EventStreamClient.open(`${third.url}/events?after=${middle}`)
      expect(contentOf(await last.once(({ length }) => length >= seen.length)).slice(0, seen.length)).toEqual(seen)
      expect(await third.stop()).toBe(0)
    })

    test('begins anew where more happened since than --event-history keeps', async () => {
      using each = await cluster([postgres])
      const few = ['--event-history', '1000']
      await using first = await each.replica(few)
      await using watching = await EventStreamClient.open(`${first.url}/events`)
      await first.submit([noop('early')])
      const { seq } = (await watching.once((events) => events.length >= 3))[0]!
      await first.submit(Array.from({ length: 1_200 }, (_, i) => noop(`t${i}`)))
      const [late] = (
        await watching.once((events) => events.filter(({ event }) => event === 'graph_ended').length === 2)
      ).slice(-500)
      await first.stop('SIGKILL')
      await using second = await each.replica(few)
      await owns(second, 2)
      let graphs = 0
      const isForgotten = async () => {
        await second.submit(Array.from({ length: 600 }, (_, i) => noop(`${graphs++}-${i}`)))
        await using resumed = await EventStreamClient.open(`${second.url}/events?after=${late!.seq}`)
        return (await resumed.once(({ length }) => length > 0))[0]!.event === 'reset'
      }
      await using early = await EventStreamClient.open(`${second.url}/events?after=${seq}`)
      expect((await early.once(({ length }) => length > 0))[0]!.event).toBe('reset')
      await using recent = await EventStreamClient.open(`${second.url}/events?after=${late!.seq}`)
      expect((await recent.once(({ length }) => length >= 499)).map(({ event }) => event)).not.toContain('reset')
      await until(isForgotten, (isSo) => isSo) // the files of this replica are bounded, too
      expect(await second.stop()).toBe(0)
    })
  })

  describe('a cached outcome', () => {
    test('is found after a takeover, and stays while a task that took it over is there', async () => {
      using each = await cluster([postgres])
      await using first = await each.replica([], OPEN)
      const { graph_id } = await first.submit([large('made', { cache: { key: 'k' } })])
      const made = await first.ended('made')
      expect(made).toMatchObject({ status: 'success' })
      await first.stop('SIGKILL')
      await using second = await each.replica([], OPEN)
      await owns(second, 1)
      await second.submit([large('taken', { cache: { key: 'k' } })])
      const taken = await second.ended('taken')
      expect(taken).toMatchObject({ result: made.result as object, reused_from: { graph_id, task_id: 'made' } })
      expect((await second.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })).status).toBe(204)
      expect(await second.get('taken')).toMatchObject({ result: made.result as object })
      expect(await count('result', each.database)).toBe(1)
      await second.stop('SIGKILL')
      await using third = await each.replica([], OPEN)
      await owns(third, 1)
      expect(await third.get('taken')).toEqual(taken)
      expect((await third.fetch(`/graphs/${taken.graph_id}`, { method: 'DELETE' })).status).toBe(204)
      expect(await third.stop()).toBe(0)
      expect(await count('result', each.database)).toBe(0)
    })
  })

  describe('a retry in place', () => {
    const state = async (control: Control, path: string) =>
      (await (await control.fetch(path)).json()) as Record<string, unknown> & { state: string; waiting?: object }
    const retry = async (control: Control, path: string, key = '') => {
      const headers = key === '' ? {} : { 'idempotency-key': key }
      const answer = await control.fetch(`${path}/retry`, { method: 'POST', headers })
      return [answer.status, await answer.json()]
    }

    test('of an ended graph goes on after takeovers, and its graph ends once more', async () => {
      using each = await cluster([postgres])
      await using first = await each.replica([], OPEN)
      const id = await graphIdOf(
        await first.post({
          scope: 'graph',
          tasks: [
            { id: 'bad', type: 'shell', params: { script: 'seq 30000; exit 3' } },
            { id: 'ask', type: 'approval', params: { message: 'go?' }, depends_on: ['bad'], run_if: 'always' },
          ],
        }),
      )
      const graph = `/graphs/${id}`
      const asked = (control: Control) =>
        until(
          () => state(control, `${graph}/tasks/ask`),
          ({ waiting }) => waiting !== undefined && 'detail' in waiting,
        )
      const reject = (control: Control) =>
        control.fetch(`${graph}/tasks/ask/reject`, { method: 'POST', body: '{"who":"ada"}' })
      const ends = () =>
        postgres.run('select count(*)::int as n from taskmill.frame where ends and ended_at is not null', each.database)
      await asked(first)
      await reject(first)
      await until(
        () => state(first, graph),
        (found) => found.state === 'failed',
      )
      expect((await ends())[0]!.n).toBe(1)
      await first.stop('SIGKILL')

      await using second = await each.replica([], OPEN)
      await owns(second, 1)
      expect(await retry(second, graph)).toEqual([202, { graph_id: id, retried: ['bad', 'ask'], pending: 2 }])
      await asked(second)
      expect((await ends())[0]!.n).toBe(0)
      await second.stop('SIGKILL')

      await using third = await each.replica([], OPEN)
      await owns(third, 1)
      await asked(third)
      expect(await state(third, `${graph}/tasks/bad`)).toMatchObject({
        status: 'failed',
        attempt: 2,
        retried: { count: 1 },
      })
      await reject(third)
      await until(
        () => state(third, graph),
        (found) => found.state === 'failed',
      )
      expect((await ends())[0]!.n).toBe(1)
      expect(await third.stop()).toBe(0)
    })

    test('of a list goes on with its children after takeovers', async () => {
      using each = await cluster([postgres])
      await using first = await each.replica([], OPEN)
      const list = { id: 'list', type: 'shell', params: { command: 'echo', args: ['["0", "3"]'] } }
      const for_each = { $from: 'list', path: '/result/stdout', as: 'json' }
      const params = { script: 'exit $CODE', env: { CODE: { $item: '' } } }
      const tasks = [list, { id: 'map', type: 'shell', depends_on: ['list'], for_each, params }]
      const id = await graphIdOf(await first.post({ scope: 'graph', tasks }))
      const graph = `/graphs/${id}`
      const failed = async (control: Control, attempt: number) => {
        await until(
          () => state(control, graph),
          (found) => found.state === 'failed',
        )
        expect(await state(control, `${graph}/tasks/map`)).toMatchObject({ attempt, child_count: 2 })
        expect(await state(control, `${graph}/tasks/map%5B0%5D`)).toMatchObject({ attempt: 1, status: 'success' })
        expect(await state(control, `${graph}/tasks/map%5B1%5D`)).toMatchObject({ attempt, status: 'failed' })
      }
      await failed(first, 1)
      await first.stop('SIGKILL')

      await using second = await each.replica([], OPEN)
      await owns(second, 1)
      const answer = [202, { graph_id: id, retried: ['map'], pending: 2 }]
      expect(await Promise.all([retry(second, graph, 'k'), retry(second, graph, 'k')])).toEqual([answer, answer])
      await failed(second, 2)
      await second.fetch('/pause', { method: 'POST', body: '{}' })
      expect((await retry(second, graph))[0]).toBe(202)
      await second.stop('SIGKILL')

      await using third = await each.replica([], OPEN)
      await owns(third, 1)
      expect(await retry(third, graph, 'k')).toEqual(answer)
      expect(await state(third, `${graph}/tasks/map%5B1%5D`)).toMatchObject({ status: 'pending', attempt: 2 })
      await third.fetch('/resume', { method: 'POST', body: '{}' })
      await failed(third, 3)
      expect(await third.stop()).toBe(0)
    })

    test('waits for a place of its group, which another replica gives it', async () => {
      using each = await cluster([postgres])
      await using first = await each.replica([], OPEN)
      await using second = await each.replica([], OPEN)
      const concurrency = { group: 'one', limit: 1 }
      const bad = { id: 'bad', type: 'shell', params: { script: 'exit 3' } }
      const id = await graphIdOf(await first.post({ scope: 'graph', concurrency, tasks: [bad] }))
      const graph = `/graphs/${id}`
      const failed = () =>
        until(
          () => state(first, `${graph}/tasks/bad`),
          ({ status }) => status === 'failed',
        )
      await failed()
      const ask = { id: 'ask', type: 'approval', params: { message: 'go?' } }
      const holder = await graphIdOf(await second.post({ scope: 'graph', concurrency, tasks: [ask] }))
      await until(
        () => state(second, `/graphs/${holder}/tasks/ask`),
        ({ waiting }) => waiting !== undefined && 'detail' in waiting,
      )
      expect((await retry(second, graph))[0]).toBe(202)
      expect(await state(first, `${graph}/tasks/bad`)).toMatchObject({ waiting: { reason: 'group' } })
      await second.fetch(`/graphs/${holder}/cancel`, { method: 'POST' })
      expect(await failed()).toMatchObject({ attempt: 2 })
    })
  })

  describe('a rerun', () => {
    test('reads its graph from rows after a takeover, and keeps the outcomes that it reuses', async () => {
      using each = await cluster([postgres])
      await using first = await each.replica([], OPEN)
      const answer = await first.post({
        scope: 'graph',
        tasks: [large('big'), { id: 'bad', type: 'shell', params: { script: 'exit 3' }, depends_on: ['big'] }],
      })
      const sourceId = await graphIdOf(answer)
      const source = `/graphs/${sourceId}`
      const task = async (control: Control, graphId: string, id: string) =>
        (await (await control.fetch(`/graphs/${graphId}/tasks/${id}`)).json()) as Record<string, unknown>
      await until(
        () => task(first, sourceId, 'bad'),
        ({ status }) => status === 'failed',
      )
      const { result } = await task(first, sourceId, 'big')
      await first.stop('SIGKILL')

      await using second = await each.replica([], OPEN)
      await owns(second, 1)
      const again = await second.fetch(`${source}/rerun`, { method: 'POST', headers: { 'idempotency-key': 'again' } })
      const rerun = (await again.json()) as RerunResponse
      expect([again.status, rerun]).toMatchObject([202, { accepted: 2, reused: ['big'] }])
      expect(await task(second, rerun.graph_id, 'big')).toMatchObject({
        ...{ status: 'success', result: result as object },
        reused_from: { graph_id: sourceId, task_id: 'big' },
      })
      await second.stop('SIGKILL')

      await using third = await each.replica([], OPEN)
      await owns(third, 2)
      const repeated = await third.fetch(`${source}/rerun`, { method: 'POST', headers: { 'idempotency-key': 'again' } })
      expect(await repeated.json()).toEqual(rerun)
      await until(
        () => task(third, rerun.graph_id, 'bad'),
        ({ status }) => status === 'failed',
      )
      expect((await third.fetch(source, { method: 'DELETE' })).status).toBe(204)
      expect(await task(third, rerun.graph_id, 'big')).toMatchObject({ status: 'success', result: result as object })
      expect(await count('result', each.database)).toBe(1)
      expect((await third.fetch(`/graphs/${rerun.graph_id}`, { method: 'DELETE' })).status).toBe(204)
      expect(await third.stop()).toBe(0)
      expect(await count('result', each.database)).toBe(0)
    })
  })
})
