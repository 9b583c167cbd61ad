/**
 * Builds a graph from its rows in the database, in steps. Pure.
 *
 * The row of a graph has it as a frame of the journal has it, and so have its frames what came after (`frame-payloads.ts`). So they
 * are replayed as a journal is, and an interrupted attempt runs again.
 */
import { inRanges, type Steps } from '../../../shared/process/steps.ts'
import type { Failure } from '../../rules/failure.ts'
import type { Graph, Task } from '../../task/graph.ts'
import type { NumberedChange } from '../event-rows.ts'
import { GcSchedule } from '../gc-schedule.ts'
import type { Frame } from '../journal-format.ts'
import { unnumbered } from '../lost-events.ts'
import { Replay } from '../replay.ts'
import { frameOf, graphFrameOf } from './frame-payloads.ts'

/** A graph with its frames, oldest first. */
export interface GraphRows {
  readonly graph: string
  readonly frames: readonly string[]
  /** Ids of its tasks that no other graph has taken over since. */
  readonly ownIds: ReadonlySet<string>
}

export interface RecoveredGraph {
  /** Undefined if all of its tasks were deleted. */
  readonly graph: Graph | undefined
  /** Ids that a patch has taken, and whose tasks it has not added: the end of the replica came first. */
  readonly strayIds: ReadonlySet<string>
  /** Cancelled tasks whose attempts another service may not have ended yet. */
  readonly toKillRemotely: readonly Task[]
  /** Changes without a number, oldest first, as functions that take the number and the time. */
  readonly unnumbered: readonly ((seq: number, now: number) => NumberedChange)[]
  /** Tasks that failed because the end of their replica cut off their attempts. */
  readonly cutOff: readonly Task[]
  /** The highest number of a change. */
  readonly lastSeq: number
}

/**
 * `refuse` makes the error for rows that contradict each other, or that this version does not know. Attempts that were cut
 * off fail with `failure`; without one they run again.
 */
export function* recoveredGraph(
  { graph: payload, frames, ownIds }: GraphRows,
  refuse: (detail: string) => Error,
  failure?: Failure,
): Steps<RecoveredGraph> {
  const replay = new Replay(new GcSchedule(), undefined, failure)
  const all: Frame[] = [graphFrameOf(payload), ...frames.map(frameOf)]
  for (const frame of all) replay.note(frame)
  for (const frame of all) {
    yield* replay.applyInSteps(frame, refuse)
    if (all.length > 2) yield
  }
  const graphs = yield* replay.graphsInSteps(refuse)
  const [graph] = graphs
  const submitted = graph?.isScoped === false ? graph.submitted : []
  const strayIds = new Set(ownIds)
  yield* inRanges(submitted.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const task = submitted[i]!
      if (!strayIds.delete(task.id) && !task.isDeleted) task.removal = 'replaced'
    }
  })
  const { toKillRemotely, cutOff } = replay.built
  return { graph, strayIds, toKillRemotely, cutOff, unnumbered: unnumbered(graphs, replay), lastSeq: replay.lastSeq }
}
