/**
 * A client that puts schedules again and triggers them, and what must be true of their due times in the end, whatever
 * was killed meanwhile: each has one graph, or is counted as missed or skipped.
 */
import { expect } from 'bun:test'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import type { Schedule } from '../../shared/contract/schedules.ts'
import type { Random } from './random.ts'
import type { Asked } from './told.ts'
import { until } from './until.ts'

/** Milliseconds in which all must come to rest on a busy machine. */
const REST_MS = 120_000

const EVERY_MS = 1_000

/** The first two catch everything up. */
const SCHEDULES = {
  queued: { every: EVERY_MS, overlap: 'queue', catch_up: 'all' },
  allowed: { every: EVERY_MS, overlap: 'allow', catch_up: 'all', jitter: 500 },
  skipped: { every: EVERY_MS, overlap: 'skip' },
  cancelled: { every: EVERY_MS, overlap: 'cancel', catch_up: 'last' },
} as const

const NAMES = Object.keys(SCHEDULES) as (keyof typeof SCHEDULES)[]

export class ScheduleClients {
  readonly #control: Asked
  readonly #random: Random
  #client: Promise<unknown> = Promise.resolve()
  #isOver = false
  /** Graphs for due times. */
  graphs = 0

  constructor(control: Asked, random: Random) {
    this.#control = control
    this.#random = random
  }

  start(): void {
    this.#client = this.#run()
    this.#client.catch(() => {}) // whoever waits for it is told
  }

  /** Resolves when the client has finished what it is at. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#client
  }

  async #run(): Promise<void> {
    for (const name of NAMES) await this.#put(name)
    while (!this.#isOver) {
      const name = NAMES[this.#random(NAMES.length)]!
      if (this.#random(3) === 0) await this.#put(name)
      else if (this.#random(2) === 0) await this.#control.fetch(`/schedules/${name}/trigger`, { method: 'POST' })
      else await this.#get(name)
      await Bun.sleep(this.#random(300))
    }
  }

  /** Put again with the same times, a schedule goes on. */
  async #put(name: keyof typeof SCHEDULES): Promise<void> {
    const tasks = [{ id: 'a', type: 'sleep', params: { duration_ms: this.#random(60) } }]
    const body = JSON.stringify({ ...SCHEDULES[name], graph: { tasks } })
    const { status } = await this.#control.fetch(`/schedules/${name}`, { method: 'PUT', body })
    expect([200, 201]).toContain(status)
  }

  async #get(name: string): Promise<Schedule> {
    return (await (await this.#control.fetch(`/schedules/${name}`)).json()) as Schedule
  }

  /** Looks at what became of each due time, and removes the schedules with their graphs. */
  async comeToRest(): Promise<void> {
    for (const name of NAMES) {
      const enough = Date.now()
      const rests = ({ next, waiting }: Schedule) => Date.parse(next[0]!) - EVERY_MS > enough && waiting === 0
      const { created_at, next, missed, skipped } = await until(() => this.#get(name), rests, { patienceMs: REST_MS })
      expect((await this.#control.fetch(`/schedules/${name}`, { method: 'DELETE' })).status).toBeOneOf([204, 404])
      const settled = Date.parse(next[0]!) - EVERY_MS
      const graphs = await this.#graphsOf(name)
      const dues = graphs.flatMap(({ labels }) => (labels?.due === undefined ? [] : Date.parse(labels.due)))
      const counted = dues.filter((due) => due <= settled)
      expect(new Set(dues).size, `${name}: due times with graphs`).toBe(dues.length)
      expect(counted.length + missed + skipped, `${name}: due times`).toBe(
        (settled - Date.parse(created_at)) / EVERY_MS,
      )
      if ('catch_up' in SCHEDULES[name] && SCHEDULES[name].catch_up === 'all')
        expect({ name, missed, skipped }).toEqual({ name, missed: 0, skipped: 0 })
      this.graphs += counted.length
      for (const { graph_id } of graphs) await this.#remove(graph_id)
    }
  }

  /** A list may lack those of a replica that is gone, until another one has adopted them. */
  async #graphsOf(name: string): Promise<GraphSummary[]> {
    const path = `/graphs?label=schedule=${name}&limit=1000`
    const response = await until(
      () => this.#control.fetch(path),
      ({ headers }) => !headers.has('x-missing-replicas'),
      { patienceMs: REST_MS },
    )
    return (await response.json()) as GraphSummary[]
  }

  async #remove(id: string): Promise<void> {
    await until(
      async () => (await this.#control.fetch(`/graphs/${id}`, { method: 'DELETE' })).status,
      (status) => status === 204 || status === 404,
      { patienceMs: REST_MS },
    )
  }
}
