/**
 * Tests the conditions (`when`) of tasks whose dependencies let them run, one after the other.
 *
 * A condition is tested once, before the first attempt of the task, because its value may be in a file. The loop works
 * in time slices, so 100,000 conditions do not block the event loop. A task of `on_end` has the state of its graph as its
 * condition.
 */
import { nextTurn, runCooperatively, SLICE_MS } from '../../shared/process/steps.ts'
import { copyFailure } from '../executors/plain-copies.ts'
import type { Failure } from '../rules/failure.ts'
import { passes, whenIn } from '../rules/when.ts'
import type { Task } from '../task/graph.ts'
import { endState } from '../task/graph-summary.ts'
import { Fifo } from './fifo.ts'
import type { InputResolver } from './input-resolver.ts'

export interface ConditionQueueOptions {
  readonly inputs: Pick<InputResolver, 'valueOf'>
  readonly onMet: (task: Task) => void
  /** `place` names the task and the value that the condition refers to. */
  readonly onUnmet: (task: Task, place: string) => void
  readonly onFault: (task: Task, failure: Failure) => void
  /** Called after each of the three callbacks above. Their consequences are queued. */
  readonly onTested: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

type Verdict =
  | { readonly isMet: true }
  | { readonly isMet: false; readonly place: string }
  | { readonly fault: Failure }

export class ConditionQueue {
  readonly #options: ConditionQueueOptions
  readonly #waiting = new Fifo<Task>()
  #isWorking = false

  constructor(options: ConditionQueueOptions) {
    this.#options = options
  }

  push(task: Task): void {
    this.#waiting.push(task)
    if (this.#isWorking) return
    this.#isWorking = true
    this.#work().catch((error) => this.#options.onDefect(error))
  }

  async #work(): Promise<void> {
    let sliceEnd = performance.now() + SLICE_MS
    for (let task = this.#waiting.shift(); task !== undefined; task = this.#waiting.shift()) {
      const verdict = await this.#test(task)
      // The task was cancelled or deleted meanwhile.
      if (task.status === 'pending' && !task.isDeleted) {
        this.#pass(task, verdict)
        this.#options.onTested()
      }
      if (performance.now() < sliceEnd) continue
      await nextTurn()
      sliceEnd = performance.now() + SLICE_MS
    }
    this.#isWorking = false
  }

  #pass(task: Task, verdict: Verdict): void {
    if ('fault' in verdict) this.#options.onFault(task, verdict.fault)
    else if (verdict.isMet) this.#options.onMet(task)
    else this.#options.onUnmet(task, verdict.place)
  }

  async #test(task: Task): Promise<Verdict> {
    if (task.atEnd !== undefined) {
      const state = await runCooperatively(endState(task.graph))
      const isMet = task.atEnd === 'always' || task.atEnd === state
      return isMet ? { isMet } : { isMet, place: `the graph ended as ${state}` }
    }
    const when = whenIn(task.options.when!)
    if (typeof when === 'string') return { fault: { code: 'invalid_input', message: when } }
    const { reference, test } = when
    const { id, path } = reference
    try {
      const value = await this.#options.inputs.valueOf(task, reference, 'when')
      const isMet = await runCooperatively(passes(test, value))
      if (isMet !== undefined) return isMet ? { isMet } : { isMet, place: `${id}${path}` }
      return { fault: { code: 'invalid_input', message: `when.matches: ${path} of task ${id} is no text` } }
    } catch (error) {
      const { failure, isBroken } = copyFailure(error)
      if (isBroken) throw error
      return { fault: failure }
    }
  }
}
