/** Encodes numbered changes as rows of a journal frame (`journaled-state.ts`), and decodes them. Pure. */
import type { GraphOutcome, NumberedChange } from './event-rows.ts'

export interface JournaledChange {
  readonly kind: NumberedChange['kind']
  readonly graph_ordinal: number
  readonly seq: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** Id of the changed task, or of the removed graph. The rest of the disk may not have that graph any more. */
  readonly id?: string
  /** Only of ended graphs. */
  readonly outcome?: GraphOutcome
}

/** The second element is null. In the row of a state it is an id. */
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
