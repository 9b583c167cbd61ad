/** Tasks whose newest state is not in the journal yet. */
import type { Task } from '../graph/graph.ts'
import { encodeStates } from './journaled-state.ts'

/** Changed tasks that may wait, and tasks of one frame. More would make a single write block the event loop. */
const MAX_UNWRITTEN = 2_048

export class ChangedTasks {
  #tasks: Task[] = []

  /** Whether the tasks should be written now instead of waiting for more. */
  get isFull(): boolean {
    return this.#tasks.length >= MAX_UNWRITTEN
  }

  add(task: Task): void {
    if (task.isUnwritten) return
    task.isUnwritten = true
    this.#tasks.push(task)
  }

  /** Calls `write` with the payload of each frame. If it throws, the tasks of that frame and of later ones stay. */
  writeWith(write: (states: string) => void): void {
    while (this.#tasks.length > 0) {
      const isAll = this.#tasks.length <= MAX_UNWRITTEN
      const tasks = isAll ? this.#tasks : this.#tasks.slice(0, MAX_UNWRITTEN)
      write(encodeStates(tasks))
      this.#tasks = isAll ? [] : this.#tasks.slice(MAX_UNWRITTEN)
      for (const task of tasks) task.isUnwritten = false
    }
  }
}
