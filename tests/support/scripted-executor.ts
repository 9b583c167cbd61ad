/** An executor of type `test` that does what the input of each task says, and records its calls. */
import {
  type ExecutableTask,
  ExecutionError,
  type Executor,
  type ExecutorContext,
} from '../../control/executors/executor.ts'
import { nextTurn } from '../../shared/process/steps.ts'

export interface Script {
  /** What the first attempts come to; those after them succeed. `break` is a mistake of the executor itself. */
  readonly outcomes?: readonly ('ok' | 'fail' | 'break')[]
  /** Turns of the event loop that an attempt takes; without any it is answered at once. */
  readonly turns?: number
  /** Attempts last until they are told to stop, as long as the executor holds them. */
  readonly hangs?: boolean
}

export type Start = { readonly id: string; readonly attempt: number; readonly context: ExecutorContext }

export class ScriptedExecutor implements Executor {
  readonly type = 'test'
  readonly starts: Start[] = []
  /** Attempts that execute now, and the most that ever did at once. */
  executing = 0
  peak = 0
  /** Whether scripts that hang do so. */
  holds = true
  /** Attempts that ended by themselves, by task. */
  readonly #ended = new Map<string, number>()
  readonly #onStart: (task: ExecutableTask) => void

  /** `onStart` is called before anything of an attempt is done. */
  constructor(onStart: (task: ExecutableTask) => void = () => {}) {
    this.#onStart = onStart
  }

  startsOf(id: string): Start[] {
    return this.starts.filter((start) => start.id === id)
  }

  execute(task: ExecutableTask, context: ExecutorContext): unknown {
    const script = (task.input ?? {}) as Script
    this.executing++
    this.peak = Math.max(this.peak, this.executing)
    this.starts.push({ id: task.id, attempt: context.attempt, context })
    this.#onStart(task)
    if (script.hangs && this.holds) return this.#hang(context.signal)
    if (script.turns) return this.#endAfter(script.turns, task.id, script, context.signal)
    return this.#end(task.id, script)
  }

  async #hang(signal: AbortSignal): Promise<string> {
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    this.executing--
    return 'stopped'
  }

  async #endAfter(turns: number, id: string, script: Script, signal: AbortSignal): Promise<unknown> {
    for (let turn = 0; turn < turns; turn++) await nextTurn()
    if (signal.aborted) {
      this.executing-- // it did not end by itself: the next attempt does what this one would have done
      return 'stopped'
    }
    return this.#end(id, script)
  }

  #end(id: string, { outcomes = [] }: Script): unknown {
    this.executing--
    const attempt = (this.#ended.get(id) ?? 0) + 1
    this.#ended.set(id, attempt)
    const outcome = outcomes[attempt - 1] ?? 'ok'
    if (outcome === 'fail')
      throw new ExecutionError('exit_nonzero', `attempt ${attempt} failed`, { result: { attempt } })
    if (outcome === 'break') throw new Error(`attempt ${attempt} broke`)
    return { id, attempt }
  }
}
