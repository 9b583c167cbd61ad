/** Callers that wait until a task, or any task of a graph, changes or ends. */
import type { Graph, Task } from './graph.ts'

export class TaskWaiters {
  readonly #waiting = new Map<Task | Graph, Set<() => void>>()

  /**
   * Resolves at the next `notify` of one of `subjects`, or when `signal` fires. A graph stands for all of its tasks: to
   * wait for 100,000 tasks costs as much as to wait for one. Adds one listener to `signal`, not one per subject.
   */
  wait(subjects: readonly (Task | Graph)[], signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const stop = () => {
        signal.removeEventListener('abort', stop)
        for (const subject of subjects) {
          const waiting = this.#waiting.get(subject)
          if (waiting?.delete(stop) && waiting.size === 0) this.#waiting.delete(subject)
        }
        resolve()
      }
      for (const subject of subjects) {
        const waiting = this.#waiting.get(subject) ?? new Set()
        this.#waiting.set(subject, waiting.add(stop))
      }
      signal.addEventListener('abort', stop)
    })
  }

  /** Wakes the callers that wait for `task` or for its graph. */
  notify(task: Task): void {
    if (this.#waiting.size === 0) return
    for (const stop of [...(this.#waiting.get(task) ?? []), ...(this.#waiting.get(task.graph) ?? [])]) stop()
  }
}
