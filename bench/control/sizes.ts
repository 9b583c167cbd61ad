/**
 * The sizes of all workloads. Fewer graphs would measure the start of the JIT; more would take longer and give the
 * same figures.
 */
export interface ControlSizes {
  /** Clients at the same time to graphs submitted by all of them together. */
  readonly submitGraphs: ReadonlyMap<number, number>
  /** Graphs that make a fresh server warm before the clock starts. */
  readonly warmUpGraphs: number
  readonly healthRequests: number
  /** Tasks of the small wide graph and of the chain. */
  readonly smallTasks: number
  /** Runs of each small graph on one server, and runs before them that do not count. */
  readonly smallRepeats: number
  readonly smallWarmUps: number
  /** Tasks of the large wide graph. */
  readonly largeTasks: number
  /** Milliseconds of quiet before kept memory is read: a garbage collection and what it gives back take that long. */
  readonly settleMs: number
  /** Milliseconds between two writes of the state file while its stall is measured. */
  readonly persistMs: number
  readonly starts: number
}

export const FULL: ControlSizes = {
  submitGraphs: new Map([
    [1, 4_000],
    [8, 12_000],
    [32, 12_000],
  ]),
  warmUpGraphs: 2_000,
  healthRequests: 40_000,
  smallTasks: 1_000,
  smallRepeats: 30,
  smallWarmUps: 40,
  largeTasks: 100_000,
  settleMs: 1_200,
  persistMs: 1_500,
  starts: 5,
}

export const QUICK: ControlSizes = {
  submitGraphs: new Map([
    [1, 200],
    [8, 400],
    [32, 400],
  ]),
  warmUpGraphs: 100,
  healthRequests: 1_000,
  smallTasks: 100,
  smallRepeats: 3,
  smallWarmUps: 1,
  largeTasks: 5_000,
  settleMs: 100,
  persistMs: 300,
  starts: 2,
}
