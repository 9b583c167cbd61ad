/** The executors by type of task. */
import { type Log, silentLog } from '../../shared/logs/log.ts'
import type { Executor, MethodExecutor } from './executor.ts'
import { guarded } from './guarded.ts'
import { runnable } from './hooks.ts'

export class ExecutorRegistry {
  readonly #byType = new Map<string, Executor>()
  readonly #log: Log
  #types: ReadonlySet<string> = new Set()

  /** All registered types. */
  get types(): ReadonlySet<string> {
    return this.#types
  }

  /** `log` gets errors of executors outside attempts. */
  constructor(executors: Iterable<Executor | MethodExecutor> = [], log: Log = silentLog()) {
    this.#log = log
    for (const executor of executors) this.register(executor)
  }

  /** Throws if the type has an executor already. */
  register(executor: Executor | MethodExecutor): void {
    if (this.#byType.has(executor.type)) throw new Error(`an executor of type ${executor.type} is registered already`)
    this.#byType.set(executor.type, guarded(runnable(executor), this.#log))
    this.#types = new Set(this.#byType.keys())
  }

  /** The executor of `type`, with hooks folded into `execute` and guarded methods. */
  get(type: string): Executor | undefined {
    return this.#byType.get(type)
  }
}
