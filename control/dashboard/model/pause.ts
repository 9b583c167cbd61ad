/** What is paused, in summaries and in words. Pure. */
import { agoText } from './amounts.ts'
import type { GraphSummary, StreamEvent } from './wire.ts'

/** The summary after `graph_paused` or `graph_resumed`. Paused again, a graph keeps the time of its pause. */
export function withPause(summary: GraphSummary, { kind, at, by, why }: StreamEvent): GraphSummary {
  const { pause, ...rest } = summary
  if (kind !== 'graph_paused') return rest
  const since = pause?.since ?? at
  return { ...rest, pause: { since, ...(by != null && { by: String(by) }), ...(why != null && { why: String(why) }) } }
}

/** `type` is absent for a graph, and for the service. */
export function pauseSentence(
  { since, by, why }: NonNullable<GraphSummary['pause']>,
  what: string,
  now: number,
): string {
  const who = by === undefined ? '' : ` by ${by}`
  return `${what} paused ${agoText(since, now)}${who}: nothing new starts${why === undefined ? '.' : ` (${why}).`}`
}
