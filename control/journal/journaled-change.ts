/** Changes that have numbers of their own, as rows of a journal frame (`journaled-state.ts`). Pure. */
import type { GraphOutcome, NumberedChange } from './event-rows.ts'

export interface JournaledChange {
  readonly kind: NumberedChange['kind']
  readonly graph_ordinal: number
  readonly seq: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** Id of the changed task, or of the removed graph, which nothing else on disk may hold any more. */
  readonly id?: string
  /** Of an ended graph. */
  readonly outcome?: GraphOutcome
}

/** Null stands where the row of a state has the id. */
export type ChangeRow = readonly [
  ...[graphOrdinal: number, id: null, seq: number, at: number, kind: JournaledChange['kind']],
  detail?: string | GraphOutcome,
]

export function changeRow(change: NumberedChange): ChangeRow {
  const { kind, seq, at } = change
  switch (kind) {
    case 'deleted':
    case 'recovered':
    case 'reused':
      return [change.task.graph.ordinal, null, seq, at, kind, change.task.id]
    case 'removed':
      return [change.graph.ordinal, null, seq, at, kind, change.graph.id]
    case 'ended':
      return [change.graph.ordinal, null, seq, at, kind, change.outcome]
    default:
      return [change.graph.ordinal, null, seq, at, kind]
  }
}

export const isChangeRow = (row: readonly unknown[]): row is ChangeRow => row[1] === null

export const journaledChange = ([graph_ordinal, , seq, at, kind, detail]: ChangeRow): JournaledChange => ({
  ...{ kind, graph_ordinal, seq, at },
  ...(typeof detail === 'string' ? { id: detail } : detail !== undefined && { outcome: detail }),
})
