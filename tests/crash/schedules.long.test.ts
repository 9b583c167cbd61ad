/**
 * Kills the service at random moments while schedules submit graphs, and looks whether each due time counted once.
 *
 * Each round starts it on the directory of the round before, lets a few due times pass and ends the process with SIGKILL. The
 * schedules are due each second and catch everything up, also what passed between two rounds. In the end, the graphs that
 * they have submitted carry each due time once, from the first to the last, and nothing is missed. A schedule whose change
 * was acknowledged is there after the next start. Another one is paused and resumed: of that, no due time of a pause has a graph. The
 * graphs of a further one fail, and it catches nothing up: each failure and each missed due time is told, under one id.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import type { Schedule } from '../../shared/contract/schedules.ts'
import { type Control, startControl } from '../support/control.ts'
import { limitOf, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { startReceiver } from '../support/receiver.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const SCHEDULES = {
  queued: { every: 1_000, overlap: 'queue' },
  allowed: { cron: '* * * * * *', overlap: 'allow' },
} as const

const GRAPH = { tasks: [{ id: 'a', type: 'noop' }], on_end: [{ type: 'noop' }] }

const NAMES = Object.keys(SCHEDULES)

const json = async <T>(response: Response): Promise<T> => (await response.json()) as T

const scheduleOf = async (control: Control, name: string): Promise<Schedule> =>
  json(await control.fetch(`/schedules/${name}`))

/** A schedule that is paused and resumed all the while. */
const HELD = 'held'

/** A schedule whose graphs fail. */
const FAILING = 'failing'
const FAILING_GRAPH = { tasks: [{ id: 'a', type: 'shell', params: { command: 'false' } }] }

/** Spans of pauses, from the answer to the request that ended them: milliseconds since 1970. */
type Pauses = { readonly from: number; to: number }[]

async function toggle(control: Control, pauses: Pauses): Promise<void> {
  const open = pauses.at(-1)
  const isPaused = open?.to === Number.POSITIVE_INFINITY
  expect((await scheduleOf(control, HELD)).paused === true, 'is paused after a kill').toBe(isPaused)
  if (isPaused) open.to = Date.now()
  const response = await control.fetch(`/schedules/${HELD}/${isPaused ? 'resume' : 'pause'}`, { method: 'POST' })
  expect(response.status).toBe(200)
  if (!isPaused) pauses.push({ from: Date.now(), to: Number.POSITIVE_INFINITY })
}

async function graphsOf(control: Control, name: string): Promise<GraphSummary[]> {
  const graphs: GraphSummary[] = []
  for (let cursor = ''; ; ) {
    const response = await control.fetch(`/graphs?label=schedule=${name}&limit=1000${cursor && `&cursor=${cursor}`}`)
    graphs.push(...(await json<GraphSummary[]>(response)))
    const next = response.headers.get('x-next-cursor')
    if (next === null) return graphs
    cursor = encodeURIComponent(next)
  }
}

/** The due times of the graphs of a schedule, in order: milliseconds since 1970. */
async function duesOf(control: Control, name: string): Promise<number[]> {
  const graphs = await graphsOf(control, name)
  return graphs.map(({ labels }) => Date.parse(labels?.due ?? '')).sort((a, b) => a - b)
}

async function settled(control: Control, name: string): Promise<number> {
  const { next } = await scheduleOf(control, name)
  return Date.parse(next[0]!) - 1_000
}

test(
  `each due time of a schedule counts once (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const random = randomNumbers(SEED)
    const options = {
      dataDir: join(dir.path, 'data'),
      flags: ['--persist-interval', '20ms', '--callback-policy', 'any'],
    }
    await using receiver = startReceiver()
    const put = (control: Control, name: string, body: object) =>
      control.fetch(`/schedules/${name}`, { method: 'PUT', body: JSON.stringify(body) })
    const pauses: Pauses = []
    for (let round = 0; round < ROUNDS; round++) {
      await using control = await startControl(options)
      if (round === 0) {
        expect((await put(control, HELD, { ...SCHEDULES.allowed, graph: GRAPH })).status).toBe(201)
        const on_failure = { url: receiver.url }
        const failing = { ...SCHEDULES.allowed, graph: FAILING_GRAPH, on_failure }
        expect((await put(control, FAILING, failing)).status).toBe(201)
      }
      await toggle(control, pauses)
      for (const name of NAMES) {
        const body = {
          ...SCHEDULES[name as keyof typeof SCHEDULES],
          catch_up: 'all',
          graph: GRAPH,
        }
        // Put again with the same times, a schedule goes on.
        if (round === 0 || random(3) === 0) {
          expect((await put(control, name, body)).status).toBe(round === 0 ? 201 : 200)
        }
      }
      const name = NAMES[random(NAMES.length)]!
      const before = await settled(control, name)
      await until(
        () => settled(control, name),
        (at) => at > before,
      )
      const due = (await settled(control, name)) + 1_000
      await Bun.sleep(Math.max(0, due - Date.now() - 10 + random(30))) // the kill comes shortly before, while or after it submits
      control.process.kill('SIGKILL')
      await control.process.exited
    }
    await using control = await startControl(options)
    for (const name of NAMES) {
      const enough = Date.now()
      await until(
        () => settled(control, name),
        (at) => at > enough,
      )
      await control.fetch(`/schedules/${name}/pause`, { method: 'POST' })
      const dues = await duesOf(control, name)
      expect(dues.length).toBeGreaterThanOrEqual(ROUNDS)
      for (let i = 1; i < dues.length; i++) expect(dues[i]! - dues[i - 1]!, `${name}: due time ${i}`).toBe(1_000)
      expect(await scheduleOf(control, name)).toMatchObject({ missed: 0, skipped: 0 })
    }
    await control.fetch(`/schedules/${FAILING}/pause`, { method: 'POST' })
    const { missed } = await until(
      () => scheduleOf(control, FAILING),
      ({ running }) => running === 0,
    )
    const ids = (await graphsOf(control, FAILING)).map(({ graph_id }) => graph_id).sort()
    const told = () => {
      const byId = new Map(receiver.received.map(({ headers, data }) => [headers.get('x-taskmill-delivery'), data]))
      const failures = [...byId.values()]
      return {
        missed: failures.reduce((sum, { missed = 0 }) => sum + Number(missed), 0),
        ids: failures.flatMap(({ graph_id }) => (graph_id === undefined ? [] : String(graph_id))).sort(),
      }
    }
    await until(told, (found) => found.missed >= missed && found.ids.length >= ids.length)
    expect(told()).toEqual({ missed, ids })
    const dues = await duesOf(control, HELD)
    expect(dues.length).toBeGreaterThan(0)
    expect(dues.filter((due) => pauses.some(({ from, to }) => from < due && due < to))).toEqual([])
  },
  limitOf(ROUNDS),
)
