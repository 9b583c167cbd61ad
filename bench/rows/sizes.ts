/**
 * The sizes of the rows. One run of all sections takes at most seven minutes on two quiet cores. Most of that time goes into
 * the first thousand tasks after a start and into large graphs.
 */
import type { SubmitSizes } from '../control/submit.ts'
import type { Shape } from '../load/jobs.ts'
import type { Goal } from '../measure.ts'

export interface GraphRow {
  readonly key: string
  readonly label: string
  readonly shape: Shape
  readonly tasks: number
  /** Measured runs on one fresh server, and earlier runs to warm up. */
  readonly repeats: number
  readonly warmUps: number
  readonly goal: Goal
}

export interface ControlRowSizes extends SubmitSizes {
  readonly starts: number
  readonly graphs: readonly GraphRow[]
  /** Graphs of one no-op task: measured ones, and earlier ones to warm up. */
  readonly oneTasks: number
  readonly oneWarmUps: number
  /** Ended tasks that the service keeps, and requests for one of them. */
  readonly keptTasks: number
  readonly reads: ReadonlyMap<number, number>
  /** Tasks of the list of all tasks, and requests for it. */
  readonly listTasks: number
  readonly lists: number
  /** Milliseconds of quiet before kept memory is read, for a garbage collection and the return of its memory. */
  readonly settleMs: number
}

const wide = (tasks: number, repeats: number, warmUps: number, timesFloor: number): GraphRow => ({
  ...{ key: `wide_${tasks}`, label: `${tasks.toLocaleString('en')} independent no-op tasks, until all have ended` },
  ...{ shape: 'wide', tasks, repeats, warmUps, goal: { timesFloor } },
})

/** Most of its time goes into code that runs for the first time. */
const first = (tasks: number): GraphRow => ({
  ...{ key: 'first', label: `${tasks.toLocaleString('en')} independent no-op tasks, the first graph after a start` },
  ...{ shape: 'wide', tasks, repeats: 1, warmUps: 0, goal: { timesFloor: 3.3 } },
})

const chain = (tasks: number, repeats: number, warmUps: number): GraphRow => ({
  ...{ key: 'chain', label: `a chain of ${tasks.toLocaleString('en')} no-op tasks` },
  ...{ shape: 'chain', tasks, repeats, warmUps, goal: { timesFloor: 1.63 } },
})

const layers = (tasks: number, repeats: number, warmUps: number): GraphRow => ({
  ...{
    key: 'layers',
    label: `ten layers of no-op tasks, ${((9 * tasks ** 2) / 100).toLocaleString('en')} dependencies`,
  },
  ...{ shape: 'layers', tasks, repeats, warmUps, goal: { timesFloor: 1.27 } },
})

export const CONTROL: ControlRowSizes = {
  submitGraphs: new Map([
    [1, 4_000],
    [8, 12_000],
    [32, 12_000],
  ]),
  warmUpGraphs: 2_000,
  starts: 9,
  graphs: [
    first(20_000),
    wide(1_000, 15, 30, 1.44),
    wide(20_000, 3, 2, 1.83),
    wide(100_000, 1, 0, 1.63),
    chain(1_000, 15, 30),
    layers(1_000, 5, 5),
  ],
  oneTasks: 3_000,
  oneWarmUps: 1_000,
  keptTasks: 100_000,
  reads: new Map([
    [1, 10_000],
    [8, 20_000],
  ]),
  listTasks: 10_000,
  lists: 30,
  settleMs: 1_200,
}

export const QUICK_CONTROL: ControlRowSizes = {
  submitGraphs: new Map([
    [1, 100],
    [8, 100],
    [32, 100],
  ]),
  warmUpGraphs: 20,
  starts: 1,
  graphs: [
    first(200),
    wide(100, 2, 0, 1.44),
    wide(200, 1, 0, 1.83),
    wide(500, 1, 0, 1.63),
    chain(100, 1, 0),
    layers(100, 1, 0),
  ],
  oneTasks: 50,
  oneWarmUps: 10,
  keptTasks: 1_000,
  reads: new Map([
    [1, 50],
    [8, 50],
  ]),
  listTasks: 100,
  lists: 3,
  settleMs: 50,
}

export interface ProcessSizes {
  /** Tasks of each load: the first after a start, and those that follow. */
  readonly coldTasks: number
  readonly warmTasks: number
  /** Tasks of a shell row before those that count. */
  readonly warmUpTasks: number
  /** Milliseconds after which no further task of a load begins. */
  readonly limitMs: number
}

export const PROCESSES: ProcessSizes = { coldTasks: 1_000, warmTasks: 500, warmUpTasks: 200, limitMs: 8_000 }

export const QUICK_PROCESSES: ProcessSizes = { coldTasks: 20, warmTasks: 10, warmUpTasks: 5, limitMs: 2_000 }
