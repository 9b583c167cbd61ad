/**
 * The category `runtime`: a command or script that the runtime service runs, limited and accounted for.
 *
 * The result is the runtime service's own status of the task. This service follows it there, and ends it there when the
 * task is cancelled or runs out of time; when this service itself stops or is killed, the task runs on there, and is
 * followed again after the restart.
 */
import type { Handle } from '../../graph/task.ts'
import type { ExecutableTask, Executor, ExecutorContext } from '../executor.ts'
import type { Orphans } from './orphans.ts'
import { outcomeOf, type RuntimeResult } from './outcome.ts'
import { RemoteAttempt } from './remote-attempt.ts'
import { type ContextDefaults, ownerOf, runtimeRequest } from './request.ts'
import type { RuntimeService } from './service.ts'
import { runtimeTaskId } from './task-id.ts'

export interface RuntimeExecutorOptions {
  readonly service: RuntimeService
  readonly orphans: Orphans
  readonly defaults: ContextDefaults
  /** Milliseconds that the runtime service may be away for while it has an attempt. */
  readonly awayMs: number
  /** Whether a runtime service that cannot be reached will be there in a moment. */
  readonly isExpected?: () => boolean
}

export class RuntimeExecutor implements Executor {
  readonly type = 'runtime'
  readonly boundsItsStop = true
  readonly #options: RuntimeExecutorOptions

  constructor(options: RuntimeExecutorOptions) {
    this.#options = options
  }

  async execute(task: ExecutableTask, context: ExecutorContext): Promise<RuntimeResult> {
    const { service, defaults, awayMs, isExpected } = this.#options
    const id = context.handle?.id ?? runtimeTaskId(task.id, context.graphId, context.attempt)
    const { body, owner } = runtimeRequest(task, { runtimeId: id, defaults })
    if (context.handle === undefined) context.handOver({ id, isTaken: false })
    context.begin()
    const attempt = new RemoteAttempt({
      ...{ service, id, owner, context, awayMs },
      isExpected: isExpected?.() ?? false,
      letGo: (isTaken) => this.#letGo(id, owner, isTaken),
    })
    return outcomeOf(await attempt.run(body), service.url)
  }

  letGo(task: ExecutableTask, { id, isTaken }: Handle): void {
    this.#letGo(id, ownerOf(task, this.#options.defaults), isTaken)
  }

  #letGo(handle_id: string, owner: string | undefined, is_taken: boolean): void {
    this.#options.orphans.add({
      ...{ handle_id, is_taken, since: Date.now() },
      ...(owner !== undefined && { owner }),
    })
  }
}
