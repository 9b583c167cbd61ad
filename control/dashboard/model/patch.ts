/** Changes of a live graph, in summaries and in words. Pure. */
import { countText } from './amounts.ts'
import type { GraphSummary, StreamEvent } from './wire.ts'

/** The summary after `graph_changed`. Its tasks have to be read again. */
export function withPatch(summary: GraphSummary, { revision, by }: StreamEvent): GraphSummary {
  const { patched_by: names = [] } = summary
  const isNew = by != null && !names.includes(String(by))
  return { ...summary, revision: Number(revision), ...(isNew && { patched_by: [...names, String(by)] }) }
}

/** `changed 2 times, by ada, bob`; undefined if it never was. The token of the service has no name. */
export function changedText({ revision = 0, patched_by = [] }: GraphSummary): string | undefined {
  if (revision === 0) return undefined
  const times = revision === 1 ? 'changed once' : `changed ${countText(revision)} times`
  return patched_by.length === 0 ? times : `${times}, by ${patched_by.join(', ')}`
}
