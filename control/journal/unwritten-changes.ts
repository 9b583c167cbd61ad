/** Changes that are not in the journal yet: tasks whose newest states are not, and changes with numbers of their own. */
import type { Task } from '../graph/graph.ts'
import { type EventRow, eventRows, type NumberedChange } from './event-rows.ts'
import { encodeStates, groupsOf } from './journaled-state.ts'

/** Changes that may wait, and tasks of one frame. More would make a single write block the event loop. */
const MAX_UNWRITTEN = 2_048

export class UnwrittenChanges {
  #tasks: Task[] = []
  #changes: NumberedChange[] = []
  /** Of frames that were written while later ones were refused. */
  #rows: EventRow[] = []

  /** Whether the changes should be written now instead of waiting for more. */
  get isFull(): boolean {
    return this.#tasks.length + this.#changes.length >= MAX_UNWRITTEN
  }

  add(task: Task): void {
    if (task.isUnwritten) return
    task.isUnwritten = true
    this.#tasks.push(task)
  }

  addNumbered(change: NumberedChange): void {
    this.#changes.push(change)
  }

  /**
   * Calls `write` with the payload of each frame. If it throws, the changes of that frame and of later ones stay. Returns
   * the events of all that was written since the last call that returned: events of earlier calls have lower numbers.
   */
  writeWith(write: (states: string) => void): EventRow[] {
    while (this.#tasks.length + this.#changes.length > 0) {
      const isAll = this.#tasks.length <= MAX_UNWRITTEN
      const tasks = isAll ? this.#tasks : this.#tasks.slice(0, MAX_UNWRITTEN)
      const changes = isAll ? this.#changes : []
      const groups = groupsOf(tasks)
      write(encodeStates(groups, changes))
      const rows = eventRows(groups, changes)
      this.#rows = this.#rows.length === 0 ? rows : [...this.#rows, ...rows]
      this.#tasks = isAll ? [] : this.#tasks.slice(MAX_UNWRITTEN)
      if (isAll) this.#changes = []
      for (const task of tasks) task.isUnwritten = false
    }
    const written = this.#rows
    this.#rows = []
    return written
  }
}
