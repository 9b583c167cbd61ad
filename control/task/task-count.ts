/** The number of stored tasks: those of accepted graphs that were not deleted or retired. */
import type { Graph } from './graph.ts'

/** Stored tasks, and those of them whose graphs have ended. */
export interface TaskNumbers {
  readonly all: number
  readonly ended: number
}

export class TaskCount {
  all = 0
  /** Tasks of graphs that have ended. */
  ofEndedGraphs = 0

  /** Adds `more` tasks of `graph`. A negative number removes them. */
  add(graph: Graph, more: number): void {
    this.all += more
    if (graph.endedAt !== undefined) this.ofEndedGraphs += more
  }

  /** Called when `graph`, which had ended, is live again. */
  graphRevived(graph: Graph): void {
    this.ofEndedGraphs -= graph.visible
  }

  /** Called when the last task of `graph` has ended. */
  graphEnded(graph: Graph): void {
    if (!graph.isRetired) this.ofEndedGraphs += graph.visible
  }
}
