/**
 * The time for which 1,000 running graphs of ten tasks, and one of 20,000, cannot be asked for after control was killed:
 * until the other replica answers for the last one, without the lease, which it has to wait for. And how long the other
 * replica keeps callers waiting meanwhile. Without a database, a restart on the same directory.
 */

import type { SubmitSizes } from '../control/submit.ts'
import type { Generator } from '../generator.ts'
import type { RunningServer, ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'

export interface DatabaseSizes extends SubmitSizes {
  /** Running graphs that are taken over. */
  readonly takeoverGraphs: number
  /** Tasks of one running graph that is taken over. */
  readonly takeoverTasks: number
}

export const FULL: DatabaseSizes = {
  submitGraphs: new Map([
    [1, 4_000],
    [8, 12_000],
    [32, 12_000],
  ]),
  ...{ warmUpGraphs: 2_000, takeoverGraphs: 1_000, takeoverTasks: 20_000 },
}

export const QUICK: DatabaseSizes = {
  submitGraphs: new Map([
    [1, 200],
    [8, 400],
    [32, 400],
  ]),
  ...{ warmUpGraphs: 100, takeoverGraphs: 50, takeoverTasks: 500 },
}

export const LEASE_MS = 2_000

/** Milliseconds that a takeover of 1,000 graphs may take beyond the lease. */
const GOAL_MS = 1_000

/** Milliseconds for which a takeover may keep the event loop of a replica. */
const STALL_GOAL_MS = 20

export interface DatabaseTarget extends ServerTarget {
  /** Two replicas of one database. */
  readonly startTwo?: () => Promise<{ readonly first: RunningServer; readonly second: Promise<RunningServer> }>
}

export const takeover: Workload<DatabaseTarget, DatabaseSizes> = {
  name: 'takeover',
  measures: ({ takeoverGraphs: graphs, takeoverTasks: tasks }) => [
    {
      ...{ key: 'takeover', label: `${graphs} graphs answered again after a kill, beyond the lease` },
      ...{ unit: 'ms', better: 'lower', goal: { figure: GOAL_MS } },
    },
    {
      ...{ key: 'takeover_stall', label: '… longest wait for /health of the other replica meanwhile' },
      ...{ unit: 'ms', better: 'lower', goal: { figure: STALL_GOAL_MS } },
    },
    {
      ...{ key: 'takeover_large', label: `graph of ${tasks} tasks answered again after a kill, beyond the lease` },
      ...{ unit: 'ms', better: 'lower', goal: { figure: GOAL_MS } },
    },
    {
      ...{ key: 'takeover_large_stall', label: '… longest wait for /health of the other replica meanwhile' },
      ...{ unit: 'ms', better: 'lower', goal: { figure: STALL_GOAL_MS } },
    },
  ],
  async run(target, { sizes, prober, freshPrefix }) {
    const { takeoverGraphs, takeoverTasks } = sizes
    const many = await takenOver(target, prober, (url) => submitGraphs(url, takeoverGraphs, freshPrefix()))
    const large = await takenOver(target, prober, (url) => submit(url, heldGraph(freshPrefix(), takeoverTasks)))
    return {
      ...{ takeover: many.takeoverMs, takeover_stall: many.stallMs },
      ...{ takeover_large: large.takeoverMs, takeover_large_stall: large.stallMs },
    }
  },
}

interface TakenOver {
  readonly takeoverMs: number
  /** Null without another replica. */
  readonly stallMs: number | null
}

/** `submitLast` submits graphs to the address, and returns the id of the last one. */
async function takenOver(
  target: DatabaseTarget,
  prober: Generator,
  submitLast: (url: string) => Promise<string>,
): Promise<TakenOver> {
  if (target.startTwo === undefined) {
    const first = await target.start()
    const last = await submitLast(first.url)
    await first[Symbol.asyncDispose]()
    const killedAt = performance.now()
    await using again = await target.start({ dataDir: first.dataDir })
    await answered(again.url, last)
    return { takeoverMs: performance.now() - killedAt, stallMs: null }
  }
  const { first, second: starting } = await target.startTwo()
  await using second = await starting
  const last = await submitLast(first.url)
  await prober.run('probe-start', { url: second.url })
  await first[Symbol.asyncDispose]()
  const killedAt = performance.now()
  await answered(second.url, last)
  const takeoverMs = Math.max(0, performance.now() - killedAt - LEASE_MS)
  return { takeoverMs, stallMs: (await prober.run('probe-stop', null)).longestMs }
}

/** Returns the id of the last one. */
async function submitGraphs(url: string, graphs: number, prefix: string): Promise<string> {
  let last = ''
  for (let i = 0; i < graphs; i++) last = await submit(url, heldGraph(`${prefix}-${i}`, 10))
  return last
}

/** A graph whose first task takes longer than the bench. All others need it. */
function heldGraph(prefix: string, tasks: number): readonly object[] {
  const held = `${prefix}-0`
  return Array.from({ length: tasks }, (_, n) =>
    n === 0
      ? { id: held, type: 'sleep', params: { duration_ms: 600_000 } }
      : { id: `${prefix}-${n}`, type: 'noop', depends_on: [held] },
  )
}

async function submit(url: string, tasks: readonly object[]): Promise<string> {
  const response = await fetch(`${url}/tasks`, { method: 'POST', body: JSON.stringify({ tasks }) })
  if (response.status !== 202) throw new Error(`a graph was answered with ${response.status}`)
  return ((await response.json()) as { graph_id: string }).graph_id
}

async function answered(url: string, graphId: string): Promise<void> {
  for (;;) {
    const status = await fetch(`${url}/graphs/${graphId}`).then(
      ({ status }) => status,
      () => 0,
    )
    if (status === 200) return
    await Bun.sleep(2)
  }
}
