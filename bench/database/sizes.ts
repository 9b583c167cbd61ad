/** The sizes of the workloads: those of control, and the graphs that are taken over. */
import { FULL as CONTROL_FULL, QUICK as CONTROL_QUICK, type ControlSizes } from '../control/sizes.ts'

export interface DatabaseSizes extends ControlSizes {
  /** Running graphs that are taken over. */
  readonly takeoverGraphs: number
  /** Tasks of one running graph that is taken over. */
  readonly takeoverTasks: number
}

export const FULL: DatabaseSizes = { ...CONTROL_FULL, takeoverGraphs: 1_000, takeoverTasks: 20_000 }
export const QUICK: DatabaseSizes = { ...CONTROL_QUICK, takeoverGraphs: 50, takeoverTasks: 500 }
