/**
 * Kills the service at random moments while schedules submit graphs, and looks whether each due time counted once.
 *
 * Each round starts it on the directory of the round before, lets a few due times pass and ends the process with SIGKILL. The
 * schedules are due each second and catch everything up, also what passed between two rounds. In the end, the graphs that
 * they have submitted carry each due time once, from the first to the last, and nothing is missed. A schedule whose change
 * was acknowledged is there after the next start. Another one is paused and resumed: of that, no due time of a pause has a graph.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import type { Schedule } from '../../shared/contract/schedules.ts'
import { type Control, startControl } from '../support/control.ts'
import { limitOf, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
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

/** The due times of the graphs of a schedule, in order: milliseconds since 1970. */
async function duesOf(control: Control, name: string): Promise<number[]> {
  const dues: number[] = []
  for (let cursor = ''; ; ) {
    const response = await control.fetch(`/graphs?label=schedule=${name}&limit=1000${cursor && `&cursor=${cursor}`}`)
    for (const { labels } of await json<GraphSummary[]>(response)) dues.push(Date.parse(labels?.due ?? ''))
    const next = response.headers.get('x-next-cursor')
    if (next === null) return dues.sort((a, b) => a - b)
    cursor = encodeURIComponent(next)
  }
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
    const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '20ms'] }
    const pauses: Pauses = []
    for (let round = 0; round < ROUNDS; round++) {
      await using control = await startControl(options)
      if (round === 0) {
        const body = JSON.stringify({ ...SCHEDULES.allowed, graph: GRAPH })
        expect((await control.fetch(`/schedules/${HELD}`, { method: 'PUT', body })).status).toBe(201)
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
          const response = await control.fetch(`/schedules/${name}`, { method: 'PUT', body: JSON.stringify(body) })
          expect(response.status).toBe(round === 0 ? 201 : 200)
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
    const dues = await duesOf(control, HELD)
    expect(dues.length).toBeGreaterThan(0)
    expect(dues.filter((due) => pauses.some(({ from, to }) => from < due && due < to))).toEqual([])
  },
  limitOf(ROUNDS),
)
