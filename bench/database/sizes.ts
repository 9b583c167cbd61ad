/** The sizes of the workloads. */
import type { SubmitSizes } from '../control/submit.ts'

export interface DatabaseSizes extends SubmitSizes {
  /** Running graphs that are taken over. */
  readonly takeoverGraphs: number
  /** Tasks of one running graph that is taken over. */
  readonly takeoverTasks: number
}

export const FULL: DatabaseSizes = {
  submitGraphs: new Map([
    [1, 4_000],
    [8, 12_000],
    [32, 12_000],
  ]),
  ...{ warmUpGraphs: 2_000, takeoverGraphs: 1_000, takeoverTasks: 20_000 },
}

export const QUICK: DatabaseSizes = {
  submitGraphs: new Map([
    [1, 200],
    [8, 400],
    [32, 400],
  ]),
  ...{ warmUpGraphs: 100, takeoverGraphs: 50, takeoverTasks: 500 },
}
