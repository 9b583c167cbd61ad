/**
 * Tasks that could start but for their `not_before`. They hold no slot.
 */
import { earliestStart } from '../task/delay.ts'
import type { Task } from '../task/graph.ts'
import { WALL } from './due-queue.ts'
import { DueTasks } from './due-tasks.ts'

export class Delays extends DueTasks {
  /** `onOver` is called, by `step`, with each task whose time has come. `wake` must call `step`. */
  constructor(onOver: (task: Task) => void, wake: () => void) {
    super(onOver, wake, WALL)
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
