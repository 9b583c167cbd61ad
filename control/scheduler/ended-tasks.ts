/**
 * Notifies the dependents of ended tasks, one by one.
 *
 * A dependent that is skipped has ended too, so its dependents are notified next: the skip cascade. Each step of the
 * scheduler notifies one dependent. So the end of a task with 100,000 dependents, or of a chain of 100,000 tasks,
 * delays no request and needs no recursion. A task whose record is deleted before it runs counts as ended. In a graph
 * without rules, a success needs no step, because its dependents only count down (`outcomes.ts`).
 */
import type { Task } from '../task/graph.ts'
import { Fifo } from './fifo.ts'
import type { SkipReport } from './skip-report.ts'

/** An ended task, and the number of notified dependents. */
type Ended = { readonly task: Task; readonly report: SkipReport | undefined; next: number }

/** Notifies the pending task `dependent` of the end of `ended`. Skipped tasks are added to the report. */
type Tell = (dependent: Task, ended: Task, report: SkipReport | undefined) => void

export class EndedTasks {
  readonly #ended = new Fifo<Ended>()
  readonly #tell: Tell
  #holds = 0

  constructor(tell: Tell) {
    this.#tell = tell
  }

  add(task: Task, report?: SkipReport): void {
    report?.opened()
    this.#ended.push({ task, report, next: 0 })
  }

  get isEmpty(): boolean {
    return this.#ended.peek() === undefined
  }

  /** Pauses the notifications until `release` has been called as often as `hold`. */
  hold(): void {
    this.#holds++
  }

  release(): void {
    this.#holds--
  }

  /** Notifies one dependent if it is pending. Returns false when none is left. */
  step(): boolean {
    const ended = this.#ended.peek()
    if (ended === undefined || this.#holds > 0) return false
    const { task, report } = ended
    const { graph } = task
    if (ended.next < graph.dependentCount(task)) {
      const dependent = graph.dependent(task, ended.next++)
      if (dependent.status === 'pending' && !dependent.isDeleted) this.#tell(dependent, task, report)
      return true
    }
    this.#ended.shift()
    report?.closed()
    return true
  }
}
