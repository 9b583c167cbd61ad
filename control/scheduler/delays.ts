/**
 * Tasks that could start but for their `not_before`. They hold no slot.
 *
 * The times are those of the wall clock, which may jump, also while the machine sleeps. So it is read at least every
 * `MAX_TIMER_MS`.
 */
import { earliestStart } from '../task/delay.ts'
import type { Task } from '../task/graph.ts'
import { DueTasks } from './due-tasks.ts'

/** Milliseconds between two looks at the clock. */
const MAX_TIMER_MS = 10_000

export class Delays extends DueTasks {
  /** `onOver` is called, by `step`, with each task whose time has come. `wake` must call `step`. */
  constructor(onOver: (task: Task) => void, wake: () => void) {
    super(onOver, wake, { now: Date.now, maxTimerMs: MAX_TIMER_MS })
  }

  /** Keeps `task` if its time has not come; false otherwise. */
  keep(task: Task): boolean {
    const at = earliestStart(task)
    if (at === undefined) return false
    const leftMs = at - Date.now()
    if (leftMs > 0) this.add(task, leftMs)
    return leftMs > 0
  }
}
