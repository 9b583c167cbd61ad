/** Callers that wait for something to happen to a task, or to any task of a graph. */
import type { Graph, Task } from '../graph/graph.ts'

export class TaskWaiters {
  readonly #waiting = new Map<Task | Graph, Set<() => void>>()

  /**
   * Resolves at the next `notify` of one of `subjects`, or when `signal` fires. A graph stands for all of its tasks:
   * waiting for 100,000 of them costs as much as waiting for one. Adds one listener to `signal`, however many
   * subjects.
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

  /** It has happened to `task`. */
  notify(task: Task): void {
    if (this.#waiting.size === 0) return
    for (const stop of [...(this.#waiting.get(task) ?? []), ...(this.#waiting.get(task.graph) ?? [])]) stop()
  }
}
