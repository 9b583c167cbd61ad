/** Which executor runs which type. */
import type { Executor, MethodExecutor } from './executor.ts'
import { runnable } from './hooks.ts'

export class ExecutorRegistry {
  readonly #byType = new Map<string, Executor>()
  #types: ReadonlySet<string> = new Set()

  /** The types that a graph may name. */
  get types(): ReadonlySet<string> {
    return this.#types
  }

  constructor(executors: Iterable<Executor | MethodExecutor> = []) {
    for (const executor of executors) this.register(executor)
  }

  /** Throws when the type is taken. */
  register(executor: Executor | MethodExecutor): void {
    if (this.#byType.has(executor.type)) throw new Error(`an executor of type ${executor.type} is registered already`)
    this.#byType.set(executor.type, runnable(executor))
    this.#types = new Set(this.#byType.keys())
  }

  /** The executor of `type`; its `execute` is all there is to call. */
  get(type: string): Executor | undefined {
    return this.#byType.get(type)
  }
}
