/** The bars of a waterfall: when each task waited and ran, as shares of the time of its graph. Pure. */
import { endMs } from '../model/critical-path.ts'
import { hasEnded } from '../model/looks.ts'
import type { GraphSummary, GraphTask } from '../model/wire.ts'

export interface WaterfallRow {
  readonly task: GraphTask
  /** In percent of the whole width. Absent if it has not begun. */
  readonly waiting?: Span
  readonly running?: Span
}

export interface Span {
  readonly from: number
  readonly width: number
}

export interface Waterfall {
  /** In the order of start. Tasks that have not started come last. */
  readonly rows: readonly WaterfallRow[]
  readonly totalMs: number
  /** Times to label, as percent and milliseconds since the graph was accepted. */
  readonly ticks: readonly { readonly at: number; readonly ms: number }[]
}

/** The least width of a bar in percent, so that a short task can be seen. */
const MIN_WIDTH = 0.3

const TICK_STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5,
]

const MAX_TICKS = 8

export function waterfallOf(
  graph: GraphSummary,
  tasks: readonly GraphTask[],
  edges: readonly (readonly [from: string, to: string])[],
  nowMs: number,
): Waterfall {
  const createdMs = Date.parse(graph.created_at)
  const lastMs = tasks.reduce((last, task) => Math.max(last, lastOf(task, nowMs)), createdMs)
  const totalMs = Math.max(1, (graph.state === 'running' ? Math.max(lastMs, nowMs) : lastMs) - createdMs)
  const percent = (ms: number) => Math.min(100, Math.max(0, ((ms - createdMs) / totalMs) * 100))
  const span = (fromMs: number, toMs: number): Span => {
    const from = Math.min(percent(fromMs), 100 - MIN_WIDTH)
    return { from, width: Math.max(MIN_WIDTH, percent(toMs) - from) }
  }
  const readyMs = readyTimes(tasks, edges, createdMs)
  const rows = tasks.map((task): WaterfallRow => {
    const ready = readyMs.get(task.id)
    const startedMs = task.started_at === undefined ? undefined : Date.parse(task.started_at)
    const waitsUntil = startedMs ?? (hasEnded(task.status) ? undefined : nowMs)
    const hasWaited = ready !== undefined && waitsUntil !== undefined && waitsUntil - ready > totalMs * 0.002
    return {
      task,
      ...(hasWaited && { waiting: span(ready, waitsUntil) }),
      ...(startedMs !== undefined && { running: span(startedMs, endMs(task, nowMs)) }),
    }
  })
  const start = ({ task }: WaterfallRow) =>
    task.started_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(task.started_at)
  return {
    rows: rows.toSorted((a, b) => (start(a) === start(b) ? 0 : start(a) - start(b))),
    totalMs,
    ticks: ticksOf(totalMs),
  }
}

const lastOf = (task: GraphTask, nowMs: number): number => (task.started_at === undefined ? 0 : endMs(task, nowMs))

/** When the last dependency of each task had ended. Absent while one has not. `tasks` are in topological order. */
function readyTimes(
  tasks: readonly GraphTask[],
  edges: readonly (readonly [from: string, to: string])[],
  createdMs: number,
): Map<string, number> {
  const endOf = new Map(
    tasks.map((task) => [task.id, task.finished_at === undefined ? Number.NaN : Date.parse(task.finished_at)]),
  )
  const ready = new Map(tasks.map(({ id }) => [id, createdMs]))
  for (const [from, to] of edges) ready.set(to, Math.max(ready.get(to) ?? createdMs, endOf.get(from) ?? createdMs))
  for (const [id, ms] of ready) if (Number.isNaN(ms)) ready.delete(id)
  return ready
}

/** Round times, at most eight of them. */
function ticksOf(totalMs: number): Waterfall['ticks'] {
  const step = TICK_STEPS_MS.find((ms) => totalMs / ms <= MAX_TICKS) ?? Math.ceil(totalMs / MAX_TICKS / 36e5) * 36e5
  const count = Math.floor(totalMs / step)
  return Array.from({ length: count }, (_, index) => {
    const ms = (index + 1) * step
    return { at: (ms / totalMs) * 100, ms }
  }).filter(({ at }) => at < 97)
}
