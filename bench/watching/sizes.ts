import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'

/**
 * The sizes of all workloads. With fewer clients or changes the JIT and the garbage collector decide; with more the
 * figures stay the same.
 */
export interface WatchingSizes {
  /**
   * Clients that get an event for each change, and the changes. With more than 100 clients, control sends in batches.
   */
  readonly latencyClients: number
  readonly latencyGraphs: number
  /** Graphs that warm up a fresh server before the measurement. */
  readonly warmUpGraphs: number
  /** Clients in the workloads `clients` and `beside`. */
  readonly manyClients: number
  /** Graphs in the workload `clients`, with three events each. */
  readonly heardGraphs: number
  /** Milliseconds of rest before memory is read. The garbage collector returns memory in that time. */
  readonly settleMs: number
  /** Graphs per slice of submissions, and slices on each of the two servers. */
  readonly sliceGraphs: number
  readonly slices: number
  /** Tasks in the workload `lists`: half of them in one graph, the others in graphs of ten. */
  readonly listedTasks: number
  readonly pages: number
  /** Tasks of the graph that the browser draws, and the number of drawings. */
  readonly drawnTasks: number
  readonly drawings: number
  /** Graphs in the list of a page that is opened. */
  readonly openedGraphs: number
}

export const FULL: WatchingSizes = {
  latencyClients: 100,
  latencyGraphs: 150,
  warmUpGraphs: 300,
  manyClients: 1_000,
  heardGraphs: 17,
  settleMs: 1_500,
  sliceGraphs: 1_500,
  slices: 5,
  listedTasks: 100_000,
  pages: 100,
  drawnTasks: 500,
  drawings: 5,
  openedGraphs: 1_000,
}

export const QUICK: WatchingSizes = {
  latencyClients: 5,
  latencyGraphs: 10,
  warmUpGraphs: 10,
  manyClients: 30,
  heardGraphs: 3,
  settleMs: 100,
  sliceGraphs: 40,
  slices: 2,
  listedTasks: 2_000,
  pages: 10,
  drawnTasks: 50,
  drawings: 1,
  openedGraphs: 20,
}

export type WatchingWorkload = Workload<ServerTarget, WatchingSizes>
