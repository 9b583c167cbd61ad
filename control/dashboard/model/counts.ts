/** Counts of tasks by status: their updates, and the parts of a bar. */
import { countText } from './amounts.ts'
import { BAR_ORDER, hasEnded, type Look, type Looking, lookOf } from './looks.ts'
import type { Counts, GraphSummary, GraphTask, WaitingCounts } from './wire.ts'

type Status = GraphTask['status']

/** `counts` after `tasks` went from one status to another: as many of them as had the first one. */
export function moved(counts: Counts, from: Status, to: Status, tasks = 1): Counts {
  const before = counts[from] ?? 0
  const some = Math.min(tasks, before)
  if (from === to || some === 0) return counts
  const next = { ...counts, [to]: (counts[to] ?? 0) + some, [from]: before - some }
  if (next[from] === 0) delete next[from]
  return next
}

export function countsOf(tasks: Iterable<Pick<GraphTask, 'status'>>): Counts {
  const counts: Counts = {}
  for (const { status } of tasks) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** The summary after `tasks_retried`: the graph runs again. `task_changed` follows for each task that is pending again. */
export function runningAgain({ finished_at: _, duration_ms: __, ...rest }: GraphSummary): GraphSummary {
  return { ...rest, state: 'running' }
}

/** How far a graph is: `17 of 30 done`, `4 of 7 done, 1 failed, 2 skipped`. Only tasks that succeeded are done. */
export function doneText(counts: Counts, total: number, noun = 'done'): string {
  const others = (['failed', 'cancelled', 'skipped'] as const).filter((status) => (counts[status] ?? 0) > 0)
  const rest = others.map((status) => `, ${countText(counts[status]!)} ${status}`)
  return `${countText(counts.success ?? 0)} of ${countText(total)} ${noun}${rest.join('')}`
}

export const endedCount = (counts: Counts): number =>
  BAR_ORDER.reduce((sum, status) => sum + (hasEnded(status) ? (counts[status] ?? 0) : 0), 0)

/** The parts of a bar, in order, as shares of `total`. A part that exists is never thinner than 2 %. */
export function barParts(counts: Counts, total: number): { status: Status; count: number; percent: number }[] {
  const parts = BAR_ORDER.flatMap((status) => {
    const count = counts[status] ?? 0
    return count === 0 ? [] : [{ status: status as Status, count, percent: Math.max(2, (count / total) * 100) }]
  })
  const sum = parts.reduce((all, { percent }) => all + percent, 0)
  return sum <= 100 ? parts : parts.map((part) => ({ ...part, percent: (part.percent / sum) * 100 }))
}

/** The text of a bar for screen readers: `12 succeeded, 1 failed`. */
export const countsSentence = (counts: Counts, words: Readonly<Record<Status, string>>): string =>
  BAR_ORDER.flatMap((status) => (counts[status] === undefined ? [] : [`${counts[status]} ${words[status]}`])).join(', ')

/** The counts of `waiting` of a graph: its tasks whose looks are those of a wait. */
export function waitingCounts(tasks: Iterable<Looking>): WaitingCounts | undefined {
  const counts: WaitingCounts = {}
  for (const task of tasks) {
    const look = lookOf(task)
    if (look === 'asking') counts.approval = (counts.approval ?? 0) + 1
    if (look === 'backoff') counts.backoff = (counts.backoff ?? 0) + 1
  }
  return Object.keys(counts).length === 0 ? undefined : counts
}

/** `waiting` after one task began or no longer has a wait. Undefined if none is left. */
export function waited(waiting: WaitingCounts = {}, kind: keyof WaitingCounts, by: 1 | -1): WaitingCounts | undefined {
  const next = { ...waiting, [kind]: Math.max(0, (waiting[kind] ?? 0) + by) }
  if (next[kind] === 0) delete next[kind]
  return Object.keys(next).length === 0 ? undefined : next
}

/** The look of a graph. One approval that waits is enough for `asking`. `backoff` means that nothing executes. */
export function graphLook({ state, counts, waiting = {} }: Pick<GraphSummary, 'state' | 'counts' | 'waiting'>): Look {
  if (state !== 'running') return state
  if ((waiting.approval ?? 0) > 0) return 'asking'
  const backoff = waiting.backoff ?? 0
  return backoff > 0 && (counts.running ?? 0) <= backoff && (counts.cancelling ?? 0) === 0 ? 'backoff' : 'running'
}
