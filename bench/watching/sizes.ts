/**
 * The sizes of all workloads. With fewer clients or changes the JIT and the garbage collector decide; with more the
 * figures stay the same.
 */
export interface WatchingSizes {
  /** Clients that are told of each change, and the changes. A hundred is the most that control serves without batches. */
  readonly latencyClients: number
  readonly latencyGraphs: number
  /** Graphs that make a fresh server warm before the clock starts. */
  readonly warmUpGraphs: number
  /** Clients whose memory is measured, and that watch graphs in which nothing happens. */
  readonly manyClients: number
  /** Graphs that these clients hear of: three events each. */
  readonly heardGraphs: number
  /** Milliseconds of quiet before memory is read: a garbage collection and what it gives back take that long. */
  readonly settleMs: number
  /** Graphs of a slice of submissions, and slices on each of two servers. */
  readonly sliceGraphs: number
  readonly slices: number
  /** Tasks in the service whose lists are asked for: half of them in one graph, the others in graphs of ten. */
  readonly listedTasks: number
  readonly pages: number
  /** Tasks of the graph that a browser draws, and how often it does. */
  readonly drawnTasks: number
  readonly drawings: number
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
}
