/** Changes that have numbers of their own, as rows of a journal frame (`journaled-state.ts`). Pure. */
import type { NumberedChange } from './event-rows.ts'

export interface JournaledChange {
  readonly kind: NumberedChange['kind']
  readonly graph_ordinal: number
  readonly seq: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** The changed task; of a removed graph, its id, which nothing else on disk may hold any more. */
  readonly id?: string
}

/** Null stands where the row of a state has the id. */
export type ChangeRow = readonly [
  ...[graphOrdinal: number, id: null, seq: number, at: number, kind: JournaledChange['kind']],
  id?: string,
]

export function changeRow(change: NumberedChange): ChangeRow {
  const { kind, seq, at } = change
  switch (kind) {
    case 'deleted':
    case 'recovered':
      return [change.task.graph.ordinal, null, seq, at, kind, change.task.id]
    case 'removed':
      return [change.graph.ordinal, null, seq, at, kind, change.graph.id]
    default:
      return [change.graph.ordinal, null, seq, at, kind]
  }
}

export const isChangeRow = (row: readonly unknown[]): row is ChangeRow => row[1] === null

export const journaledChange = ([graph_ordinal, , seq, at, kind, id]: ChangeRow): JournaledChange => ({
  ...{ kind, graph_ordinal, seq, at },
  ...(id !== undefined && { id }),
})
