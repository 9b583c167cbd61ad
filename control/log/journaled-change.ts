/** Encodes numbered changes as rows of a journal frame (`journaled-state.ts`), and decodes them. Pure. */
import { MAX_EVENT_ERROR_CHARACTERS } from '../../shared/contract/events.ts'
import type { Pause } from '../rules/pause.ts'
import type { GraphOutcome, NumberedChange, PatchDetail, RetriedDetail, TaskMoment } from './event-rows.ts'
import type { KeptKey } from './idempotency.ts'

export interface JournaledChange {
  readonly kind: NumberedChange['kind']
  readonly graph_ordinal: number
  readonly seq: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** Id of the changed task, or of the removed graph; of a resumed graph who resumed it. The rest of the disk may not have that graph any more. */
  readonly id?: string
  /** Only of ended graphs. */
  readonly outcome?: GraphOutcome
  /** Only of paused graphs. */
  readonly pause?: Pause
  /** Only of retries. */
  readonly retried?: RetriedDetail
  /** Of a retry, if its caller sent one. */
  readonly idempotency?: KeptKey
  /** Only of recovered tasks, and absent in journals of earlier versions. */
  readonly state?: RecoveredState
}

type JournaledRetry = RetriedDetail & { readonly idempotency?: KeptKey | undefined }

/** The state that a start gave to a task. Absent values are omitted. */
export type RecoveredState = Pick<TaskMoment, 'status' | 'attempt'> & Partial<Omit<TaskMoment, 'at'>>

/** The second element is null. In the row of a state it is an id. */
export type ChangeRow = readonly [
  ...[graphOrdinal: number, id: null, seq: number, at: number, kind: JournaledChange['kind']],
  detail?: string | GraphOutcome | Pause | JournaledRetry | PatchDetail,
  state?: RecoveredState,
]

export function changeRow(change: NumberedChange): ChangeRow {
  const { kind, seq, at } = change
  switch (kind) {
    case 'recovered':
      return [change.task.graph.ordinal, null, seq, at, kind, change.task.id, recoveredState(change.moment)]
    case 'deleted':
    case 'reused':
      return [change.task.graph.ordinal, null, seq, at, kind, change.task.id]
    case 'removed':
      return [change.graph.ordinal, null, seq, at, kind, change.graph.id]
    case 'retried':
      return [change.graph.ordinal, null, seq, at, kind, { ...change.retried, idempotency: change.idempotency }]
    case 'patched':
      return [change.graph.ordinal, null, seq, at, kind, change.patch]
    case 'ended':
      return [change.graph.ordinal, null, seq, at, kind, change.outcome]
    case 'paused':
      return [change.graph.ordinal, null, seq, at, kind, change.pause]
    case 'resumed':
      return change.by === undefined
        ? [change.graph.ordinal, null, seq, at, kind]
        : [change.graph.ordinal, null, seq, at, kind, change.by]
    default:
      return [change.graph.ordinal, null, seq, at, kind]
  }
}

const recoveredState = ({ at, error, ...state }: TaskMoment): RecoveredState => ({
  ...state,
  error: error?.slice(0, MAX_EVENT_ERROR_CHARACTERS),
})

export const isChangeRow = (row: readonly unknown[]): row is ChangeRow => row[1] === null

export const journaledChange = ([graph_ordinal, , seq, at, kind, detail, state]: ChangeRow): JournaledChange => ({
  ...{ kind, graph_ordinal, seq, at },
  ...detailOf(kind, detail),
  ...(state !== undefined && { state }),
})

function detailOf(kind: JournaledChange['kind'], detail: ChangeRow[5]): Partial<JournaledChange> {
  if (detail === undefined) return {}
  if (typeof detail === 'string') return { id: detail }
  if (kind === 'patched') return {} // the frame of the patch says it all
  if (kind === 'paused') return { pause: detail as Pause }
  if (kind !== 'retried') return { outcome: detail as GraphOutcome }
  const { idempotency, ...retried } = detail as JournaledRetry
  return { retried, ...(idempotency !== undefined && { idempotency }) }
}
