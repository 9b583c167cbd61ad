/** Which executor runs which type. */
import { type Log, silentLog } from '../../shared/log.ts'
import type { Executor, MethodExecutor } from './executor.ts'
import { guarded } from './guarded.ts'
import { runnable } from './hooks.ts'

export class ExecutorRegistry {
  readonly #byType = new Map<string, Executor>()
  readonly #log: Log
  #types: ReadonlySet<string> = new Set()

  /** The types that a graph may name. */
  get types(): ReadonlySet<string> {
    return this.#types
  }

  /** `log` gets the mistakes of executors that no attempt takes. */
  constructor(executors: Iterable<Executor | MethodExecutor> = [], log: Log = silentLog()) {
    this.#log = log
    for (const executor of executors) this.register(executor)
  }

  /** Throws when the type is taken. */
  register(executor: Executor | MethodExecutor): void {
    if (this.#byType.has(executor.type)) throw new Error(`an executor of type ${executor.type} is registered already`)
    this.#byType.set(executor.type, guarded(runnable(executor), this.#log))
    this.#types = new Set(this.#byType.keys())
  }

  /** The executor of `type`: one `execute` for all its tools and hooks, and methods that throw only what they may. */
  get(type: string): Executor | undefined {
    return this.#byType.get(type)
  }
}
