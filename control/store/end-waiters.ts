/** Callers that wait for the end of a task, or of any task of a graph. */
import type { Graph, Task } from '../graph/graph.ts'

export class EndWaiters {
  readonly #waiting = new Map<Task | Graph, Set<() => void>>()

  /**
   * Resolves when the next of `subjects` ends or is deleted, or when `signal` fires. A graph stands for all of its
   * tasks: waiting for 100,000 of them costs as much as waiting for one. Adds one listener to `signal`, however many
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

  /** `task` has ended or was deleted. */
  notify(task: Task): void {
    if (this.#waiting.size === 0) return
    for (const stop of [...(this.#waiting.get(task) ?? []), ...(this.#waiting.get(task.graph) ?? [])]) stop()
  }
}
