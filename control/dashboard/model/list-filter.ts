/** Which graphs the list shows, beside the words of its search. Pure. */
import { graphLook } from './counts.ts'
import type { GraphSummary } from './wire.ts'

export const SHOWN = ['all', 'asking', 'running', 'failed', 'cancelled', 'success'] as const
export type Shown = (typeof SHOWN)[number]

export const SHOWN_WORDS: Readonly<Record<Shown, string>> = {
  all: 'Every state',
  asking: 'Needs you',
  running: 'Running',
  failed: 'Failed',
  cancelled: 'Cancelled',
  success: 'Succeeded',
}

/** Ages in milliseconds. 0: any. */
export const AGES = [
  [0, 'Any time'],
  [3_600_000, 'Last hour'],
  [24 * 3_600_000, 'Last day'],
  [7 * 24 * 3_600_000, 'Last week'],
] as const satisfies readonly (readonly [ms: number, words: string])[]

export interface ListFilter {
  readonly shown: Shown
  /** Only graphs that were accepted so many milliseconds ago or later. 0: all. */
  readonly withinMs: number
}

export const NO_FILTER: ListFilter = { shown: 'all', withinMs: 0 }

export const isShown = (graph: GraphSummary, { shown, withinMs }: ListFilter, now: number): boolean =>
  (withinMs === 0 || Date.parse(graph.created_at) >= now - withinMs) &&
  (shown === 'all' || (shown === 'asking' ? graphLook(graph) === 'asking' : graph.state === shown))

/** The list with graphs that it lacks, the newest first. */
export function joined(listed: readonly GraphSummary[], others: readonly GraphSummary[]): readonly GraphSummary[] {
  const known = new Set(listed.map(({ graph_id }) => graph_id))
  const more = others.filter(({ graph_id }) => !known.has(graph_id))
  return more.length === 0 ? listed : [...listed, ...more].sort((a, b) => (a.created_at < b.created_at ? 1 : -1))
}
