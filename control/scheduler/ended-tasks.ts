/**
 * Tells the dependents of ended tasks about that, one by one.
 *
 * A dependent that is skipped for it has ended too, so its own dependents are told: a cascade. It takes a step in each of
 * the scheduler's steps. So the end of a task with 100,000 dependents, or of a chain of 100,000, delays no request and
 * needs no recursion. A task whose record is deleted before it runs counts as ended. In a graph without rules a success
 * needs no step: its dependents only count down (`outcomes.ts`).
 */
import type { Task } from '../graph/graph.ts'
import { Fifo } from './fifo.ts'
import type { SkipReport } from './skip-report.ts'

/** An ended task, and how many of its dependents were told. */
type Ended = { readonly task: Task; readonly report: SkipReport | undefined; next: number }

/** Tells the pending task `dependent` that `ended` has ended. Tasks that are skipped by that belong to the same report. */
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

  /** Tells no task until `letGo` is called as often as this. */
  hold(): void {
    this.#holds++
  }

  letGo(): void {
    this.#holds--
  }

  /** Tells one dependent, if it waits; false when nothing is left to do. */
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
