/**
 * Makes the events that the history lacks at a start from the content of the journal.
 *
 * The history is written after the journal, so a crash can cut off its end. The numbers of those events are in the
 * journal. Other events have no number yet, because the crash came first: a graph was accepted or ended, a crash
 * interrupted an attempt, a rerun reused an outcome, or a child was deleted with its parent. They get numbers now.
 */
import type { Graph, Task } from '../task/graph.ts'
import {
  type EventRow,
  momentOf,
  type NumberedChange,
  outcomeOf,
  patchDetail,
  rangeOf,
  rowOfChange,
  type TaskMoment,
  taskRow,
} from './event-rows.ts'
import type { Frame } from './journal-format.ts'
import type { JournaledChange } from './journaled-change.ts'
import { decodePatch, type JournaledPatch } from './journaled-patch.ts'
import { decodeRows, decodeStates, type JournaledState } from './journaled-state.ts'

export class LostEvents {
  readonly #tasks = new Map<Graph, ReadonlyMap<string, Task>>()
  readonly #graphs: ReadonlyMap<number, Graph>

  constructor(graphs: readonly Graph[]) {
    this.#graphs = new Map(graphs.map((graph) => [graph.ordinal, graph]))
  }

  /** Whether it makes events of the graph with this number. */
  has(ordinal: number): boolean {
    return this.#graphs.has(ordinal)
  }

  /** The rows of the changes in `frames` after the number `kept`, in order. Changes of removed tasks have no rows. */
  rowsAfter(kept: number, frames: readonly Frame[]): EventRow[] {
    const rows = frames.flatMap(({ kind, payload }) => {
      const patch = kind === 'm' ? decodePatch(payload) : undefined
      const { states, changes } = patch
        ? decodeRows(patch.states ?? [])
        : decodeStates(new TextDecoder().decode(payload))
      return [
        ...(patch ? [this.#rowOfPatch(patch)] : []),
        ...states.map((state) => this.#rowOfState(state)),
        ...changes.map((change) => this.#rowOf(change)),
      ]
    })
    return rows
      .flatMap((row) => (row === undefined ? [] : { row, seq: rangeOf([row]).first }))
      .filter(({ seq }) => seq > kept)
      .sort((a, b) => a.seq - b.seq)
      .map(({ row }) => row)
  }

  #rowOfPatch(patch: JournaledPatch): EventRow | undefined {
    const { graph_ordinal, seq, at, tasks, remove } = patch
    const graph = this.#graphs.get(graph_ordinal)
    const removed = remove.map((id) => ({ id }))
    const detail = graph && patchDetail({ ...patch, by: patch.by, added: tasks as { id: string }[], removed })
    return detail && rowOfChange({ kind: 'patched', graph: graph!, seq, at, patch: detail })
  }

  #taskOf(graph: Graph, id: string): Task | undefined {
    let tasks = this.#tasks.get(graph)
    if (tasks === undefined) {
      tasks = new Map(graph.tasks.map((task) => [task.id, task]))
      this.#tasks.set(graph, tasks)
    }
    return tasks.get(id)
  }

  #rowOfState({ id, seq, graph_ordinal, deleted, ...state }: JournaledState): EventRow | undefined {
    const graph = this.#graphs.get(graph_ordinal)
    const task = graph && this.#taskOf(graph, id)
    if (task === undefined || deleted) return undefined
    const { status, run_status: runStatus, attempt = 0, updated_at: at = task.createdAt, failure, progress } = state
    const moment: TaskMoment = {
      ...{ at, status, runStatus, attempt },
      startedAt: state.started_at,
      finishedAt: state.finished_at,
      error: state.error ?? failure?.message,
      code: failure?.code,
      progress: progress?.at(-1),
      reusedFrom: state.reused_from,
      childCount: state.child_count,
    }
    return taskRow(task, moment, seq)
  }

  #rowOf(change: JournaledChange): EventRow | undefined {
    const { kind, graph_ordinal, seq, at, id = '', outcome, pause } = change
    if (kind === 'patched') return undefined // its frame, which comes before, makes the row
    if (kind === 'removed') return [kind, id, seq, at, {}]
    const graph = this.#graphs.get(graph_ordinal)
    if (graph === undefined) return undefined
    if (kind === 'paused') return pause && rowOfChange({ kind, graph, seq, at, pause })
    if (kind === 'resumed') return rowOfChange({ kind, graph, seq, at, ...(id !== '' && { by: id }) })
    if (kind === 'accepted') return rowOfChange({ kind, graph, seq, at })
    if (kind === 'ended') return rowOfChange({ kind, graph, seq, at, outcome: outcome ?? outcomeOf(graph) })
    if (kind === 'retried') return rowOfChange({ kind, graph, seq, at, retried: change.retried! })
    // A child may be in no graph any more: a state file without its parent was written before.
    if (kind === 'deleted') return rowOfChange({ kind, task: { id, graph }, seq, at })
    const task = this.#taskOf(graph, id)
    if (task === undefined) return undefined
    if (kind === 'reused') return rowOfChange({ kind, task, seq, at })
    return rowOfChange({ kind, task, seq, at, moment: recoveredMoment(task, change) })
  }
}

/** The state that a start gave to `task`. In journals of earlier versions, the change lacks it. */
function recoveredMoment(task: Task, { seq, at, state }: JournaledChange): TaskMoment {
  if (state !== undefined) return { ...NOTHING_KNOWN, ...state, at }
  return task.seq < seq ? momentOf(task, at) : { ...NOTHING_KNOWN, at } // only a pending task can have changed since
}

const NOTHING_KNOWN: Omit<TaskMoment, 'at'> = {
  ...{ status: 'pending', runStatus: undefined, attempt: 0, startedAt: undefined, finishedAt: undefined },
  ...{ error: undefined, code: undefined, progress: undefined, reusedFrom: undefined, childCount: undefined },
}

/**
 * Numbers of the graphs to which something happened, and of those for which the journal has the number of the change.
 */
export interface Happened {
  readonly graphs: ReadonlySet<number>
  readonly numbered: ReadonlySet<number>
}

/** What a start finds out about (`Replay`). */
interface Untold {
  readonly accepted: Happened
  readonly ended: Happened
  readonly built: {
    readonly changed: readonly Task[]
    readonly deleted: readonly Pick<Task, 'id' | 'graph'>[]
  }
}

/** The changes of `graphs` that have no number yet, oldest first. */
export function unnumbered(
  graphs: readonly Graph[],
  { accepted, ended, built: { changed, deleted } }: Untold,
): ((seq: number, now: number) => NumberedChange)[] {
  const lacks = ({ graphs, numbered }: Happened, { ordinal }: Graph) => graphs.has(ordinal) && !numbered.has(ordinal)
  return [
    ...graphs
      .filter((graph) => lacks(accepted, graph))
      .map((graph) => (seq: number) => ({ kind: 'accepted', graph, seq, at: graph.createdAt }) as const),
    ...changed.map((task) => (seq: number, at: number) => {
      return { kind: 'recovered', task, seq, at, moment: momentOf(task, at) } as const
    }),
    ...deleted.map((task) => (seq: number, at: number) => ({ kind: 'deleted', task, seq, at }) as const),
    ...graphs
      .filter((graph) => graph.endedAt !== undefined && lacks(ended, graph))
      .map((graph) => (seq: number) => {
        return { kind: 'ended', graph, seq, at: graph.endedAt!, outcome: outcomeOf(graph) } as const
      }),
  ]
}
