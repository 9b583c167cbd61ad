/**
 * Clients that submit graphs which share limits (`concurrency`), and what must be true once all have ended, whatever was killed
 * meanwhile: no more ran at a time than the limit, in the order of acceptance, each was cancelled only for its group, and what it does at its
 * end (`on_end`) came last.
 */
import { expect } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { ON_END_IDS } from '../../shared/contract/on-end.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import type { Random } from './random.ts'
import type { Asked } from './told.ts'
import { until } from './until.ts'

/** Milliseconds in which all must end on a busy machine. */
const REST_MS = 120_000

/** Groups with their limits. Of those with one place, the order is looked at, too. */
const GROUPS = { single: 1, double: 2 } as const
type Group = keyof typeof GROUPS

/** Mostly `wait`: the others keep a group short. */
const ON_FULL = ['wait', 'wait', 'wait', 'wait', 'wait', 'refuse', 'cancel_oldest'] as const

interface Submitted {
  readonly id: string
  readonly group: Group
  readonly onFull: (typeof ON_FULL)[number]
  /** Milliseconds. */
  readonly sentAt: number
  readonly answeredAt: number
}

/** Milliseconds since 1970. */
interface Span {
  readonly startedAt: number
  readonly endedAt: number
}

export class GroupClients {
  readonly #control: Asked
  readonly #placesLeft: () => Promise<number>
  readonly #random: Random
  readonly #submitted: Submitted[] = []
  #refused = 0
  #count = 0
  #clients: Promise<unknown> = Promise.resolve()
  #isOver = false

  /** `placesLeft` tells how many places are on record. */
  constructor(control: Asked, placesLeft: () => Promise<number>, random: Random) {
    this.#control = control
    this.#placesLeft = placesLeft
    this.#random = random
  }

  /** Two clients for each group. */
  start(): void {
    const groups = Object.keys(GROUPS) as Group[]
    this.#clients = Promise.all([...groups, ...groups].map((group) => this.#client(group)))
    this.#clients.catch(() => {}) // whoever waits for them is told
  }

  /** Resolves when the clients have finished what they are at. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#clients
  }

  async #client(group: Group): Promise<void> {
    const random = this.#random
    while (!this.#isOver) {
      const id = await this.#submit(group)
      if (id !== undefined && random(2) === 0) await (await this.#control.fetch(`/graphs/${id}?wait_ms=2000`)).text()
      await Bun.sleep(random(100))
    }
  }

  /** The id of the graph; undefined if it was refused. The key makes it the same graph however often the request arrives. */
  async #submit(group: Group): Promise<string | undefined> {
    const random = this.#random
    const key = `${group}-${++this.#count}`
    const onFull = ON_FULL[random(ON_FULL.length)]!
    const sleep = { type: 'sleep', params: { duration_ms: random(60) } }
    const on_end = random(2) === 0 ? [sleep, { when: 'failed', ...sleep }] : []
    const body = JSON.stringify({
      ...{ tasks: [{ id: 'a', ...sleep }, ...(random(2) === 0 ? [{ id: 'b', depends_on: ['a'], ...sleep }] : [])] },
      ...{ scope: 'graph', concurrency: { group, limit: GROUPS[group], on_full: onFull }, on_end },
    })
    const sentAt = performance.now()
    const response = await this.#control.fetch('/tasks', { method: 'POST', headers: { 'idempotency-key': key }, body })
    if (response.status === 409 && onFull === 'refuse') {
      this.#refused++
      return undefined
    }
    if (response.status !== 202) throw new Error(`${key}: ${response.status} ${await response.text()}`)
    const { graph_id: id } = (await response.json()) as SubmitResponse
    this.#submitted.push({ id, group, onFull, sentAt, answeredAt: performance.now() })
    return id
  }

  /** Waits until all graphs have ended, looks whether all is as it must be, and deletes them. */
  async comeToRest(): Promise<void> {
    const spans = new Map<Submitted, Span>()
    for (const graph of this.#submitted) {
      const tasks = await until(
        () => this.#tasksOf(graph),
        (some) => some.length > 0 && some.every(({ status }) => isTerminal(status)),
        { patienceMs: REST_MS },
      )
      expect(endsTooEarly(tasks), graph.id).toEqual([])
      const span = this.#spanOf(graph, tasks)
      if (span !== undefined) spans.set(graph, span)
    }
    expect(spans.size, 'graphs of groups that ran').toBeGreaterThan(0)
    for (const group of Object.keys(GROUPS) as Group[]) {
      const own = [...spans].filter(([graph]) => graph.group === group)
      expect(mostAtATime(own.map(([, span]) => span))).toBeLessThanOrEqual(GROUPS[group])
      if (GROUPS[group] === 1) expect(overtaken(own)).toEqual([])
    }
    await until(this.#placesLeft, 0, { patienceMs: REST_MS })
    for (const { id } of this.#submitted) {
      const answer = await this.#control.fetch(`/graphs/${id}`, { method: 'DELETE' })
      expect([204, 404]).toContain(answer.status) // an answer may get lost
      if (answer.status === 404) expect((await this.#control.fetch(`/graphs/${id}`)).status).toBe(404)
    }
  }

  async #tasksOf({ id }: Submitted): Promise<TaskRecord[]> {
    const response = await this.#control.fetch(`/graphs/${id}/tasks`)
    return response.status === 200 ? ((await response.json()) as TaskRecord[]) : []
  }

  /** Undefined if no task has started. */
  #spanOf({ id }: Submitted, tasks: readonly TaskRecord[]): Span | undefined {
    for (const { status, error = '' } of tasks) {
      if (status === 'success') continue
      expect(`${id} ${status} ${error}`).toMatch(
        / (cancelled|skipped) .*(takes its place in group| is full|dependency|the graph ended as)/,
      )
    }
    const times = tasks.flatMap(({ started_at, finished_at }) =>
      started_at === undefined ? [] : [[Date.parse(started_at), Date.parse(finished_at!)] as const],
    )
    if (times.length === 0) return undefined
    return { startedAt: Math.min(...times.map(([at]) => at)), endedAt: Math.max(...times.map(([, at]) => at)) }
  }

  /** How much was done. */
  get counts(): { readonly accepted: number; readonly refused: number } {
    return { accepted: this.#submitted.length, refused: this.#refused }
  }
}

/** Tasks of `on_end` that started before another task had ended. */
function endsTooEarly(tasks: readonly TaskRecord[]): TaskRecord[] {
  const [atEnd = [], others = []] = [true, false].map((is) =>
    tasks.filter(({ id }) => id.startsWith(ON_END_IDS) === is),
  )
  return atEnd.filter(({ started_at }) => others.some(({ finished_at }) => started_at! < finished_at!))
}

/** An end comes before a start in the same millisecond. */
function mostAtATime(spans: readonly Span[]): number {
  const steps = spans.flatMap(({ startedAt, endedAt }) => [[startedAt, 1] as const, [endedAt, -1] as const])
  let now = 0
  let most = 0
  for (const [, step] of steps.sort(([a, up], [b, down]) => a - b || up - down)) {
    now += step
    most = Math.max(most, now)
  }
  return most
}

/** Graphs that were answered before others were sent, and started after those. */
function overtaken(spans: readonly (readonly [Submitted, Span])[]): string[] {
  return spans.flatMap(([graph, { startedAt }]) =>
    spans
      .filter(([later, span]) => later.sentAt > graph.answeredAt && span.startedAt < startedAt)
      .map(([later]) => `${later.id} overtook ${graph.id}`),
  )
}
