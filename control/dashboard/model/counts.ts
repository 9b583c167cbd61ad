/** Counts of tasks by status: their updates, and the parts of a bar. */
import { BAR_ORDER, hasEnded } from './looks.ts'
import type { Counts, GraphTask } from './wire.ts'

type Status = GraphTask['status']

/** `counts` after one task went from one status to another. The same if no task had the first one. */
export function moved(counts: Counts, from: Status, to: Status): Counts {
  const before = counts[from] ?? 0
  if (from === to || before === 0) return counts
  const next = { ...counts, [to]: (counts[to] ?? 0) + 1, [from]: before - 1 }
  if (next[from] === 0) delete next[from]
  return next
}

export function countsOf(tasks: Iterable<Pick<GraphTask, 'status'>>): Counts {
  const counts: Counts = {}
  for (const { status } of tasks) counts[status] = (counts[status] ?? 0) + 1
  return counts
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
