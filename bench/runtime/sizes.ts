/**
 * The sizes of all workloads. Fewer tasks would measure the start of the JIT; more would take longer and give the same
 * figures.
 */
export interface RuntimeSizes {
  /** Tasks that make a fresh service warm before the clock starts. */
  readonly warmUpTasks: number
  /** Tasks of a single client, one after the other. */
  readonly singleTasks: number
  /** Tasks of all clients together where rates are measured. */
  readonly rateTasks: number
  /** Milliseconds after which no further task begins: a slow machine does fewer. */
  readonly limitMs: number
  /** Tasks that sleep at the same time while memory is read. */
  readonly sleepingTasks: number
  /** Milliseconds of quiet before memory is read: a garbage collection and what it gives back take that long. */
  readonly settleMs: number
  /** Tasks that wait while others are timed. */
  readonly waitingTasks: number
  /** Milliseconds that a service creates and removes tasks: long enough to remove some, or to see what hours bring. */
  readonly steadyMs: number
}

const MINUTE_MS = 60_000

export const FULL: RuntimeSizes = {
  warmUpTasks: 200,
  singleTasks: 400,
  rateTasks: 1_200,
  limitMs: 1_500,
  sleepingTasks: 100,
  settleMs: 500,
  waitingTasks: 10_000,
  steadyMs: process.env.TASKMILL_NIGHTLY === '1' ? 10 * MINUTE_MS : 8_000,
}

export const QUICK: RuntimeSizes = {
  warmUpTasks: 10,
  singleTasks: 30,
  rateTasks: 60,
  limitMs: 500,
  sleepingTasks: 10,
  settleMs: 50,
  waitingTasks: 200,
  steadyMs: 2_500,
}
