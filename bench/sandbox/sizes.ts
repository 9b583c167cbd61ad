/** The sizes of all workloads. */
export interface SandboxSizes {
  /** Launches of each command that are timed by turns. */
  readonly launches: number
  /** Tasks that make a fresh service warm before the clock starts. */
  readonly warmUpTasks: number
  /** Of one client, one after the other; and of all clients together where rates are measured. In each slice. */
  readonly singleTasks: number
  readonly rateTasks: number
  /** Milliseconds after which no further launch begins, for all of them by turns; and no further task of a slice. */
  readonly launchesMs: number
  readonly sliceMs: number
  /** Of one stream. */
  readonly streamMegabytes: number
}

export const FULL: SandboxSizes = {
  launches: 300,
  warmUpTasks: 100,
  singleTasks: 100,
  rateTasks: 400,
  launchesMs: 6_000,
  sliceMs: 1_000,
  streamMegabytes: 512,
}

export const QUICK: SandboxSizes = {
  launches: 10,
  warmUpTasks: 5,
  singleTasks: 10,
  rateTasks: 20,
  launchesMs: 2_000,
  sliceMs: 500,
  streamMegabytes: 8,
}
