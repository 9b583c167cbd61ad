/**
 * The category `runtime`: a command or script that the runtime service runs with limits and accounting.
 *
 * The executor submits the task, follows its status, and kills the task on cancel or timeout. The result is the final
 * status. If control stops or is killed, the task continues in the runtime service, and control follows it again after
 * the restart.
 */

import type { TaskPlan } from '../../../shared/contract/graph-dry-run.ts'
import { EXECUTION_KINDS } from '../../../shared/contract/runtime-request.ts'
import { CallFailed } from '../../../shared/http-client.ts'
import { isoTime } from '../../../shared/iso-time.ts'
import type { SecretNames } from '../../../shared/runtime-request/secrets.ts'
import type { Handle } from '../../graph/cold-fields.ts'
import { runtimeParameters } from '../../graph/runtime-parameters.ts'
import type {
  ExecutableTask,
  Executor,
  ExecutorContext,
  ForgottenTask,
  LogRequest,
  SecretTaking,
  ToolParameters,
} from '../executor.ts'
import type { Orphans } from './orphans.ts'
import { failureOf, outcomeOf, type RuntimeResult, resultOf } from './outcome.ts'
import { RemoteAttempt } from './remote-attempt.ts'
import { RemoteLogs } from './remote-logs.ts'
import { RemoteQueue } from './remote-queue.ts'
import type { RemoteRemovals } from './remote-removals.ts'
import { type ContextDefaults, onBehalfOf, ownerOf, runtimeRequest } from './request.ts'
import { reviewRequest } from './request-review.ts'
import type { RuntimeService } from './service.ts'
import { runtimeTaskId } from './task-id.ts'

export interface RuntimeExecutorOptions {
  readonly service: RuntimeService
  readonly orphans: Orphans
  readonly removals: RemoteRemovals
  readonly defaults: ContextDefaults
  /** Milliseconds that the runtime service may be unreachable before its attempts fail. */
  readonly awayMs: number
  /** Whether an unreachable runtime service is about to start. */
  readonly isExpected?: () => boolean
}

/** The request that a call belongs to, and the signal that cancels the call. */
interface Call {
  readonly traceId: string
  readonly signal: AbortSignal
}

/**
 * Id in reviewed requests, before an attempt exists. Ids of attempts are always valid, so the value does not matter.
 */
const REVIEWED_ID = 'reviewed'

const ANY_KIND: ToolParameters = { label: 'runtime', schema: runtimeParameters }
const PARAMETERS: ReadonlyMap<string, ToolParameters> = new Map(
  EXECUTION_KINDS.map((kind) => [kind, { label: `runtime.${kind}`, schema: runtimeParameters }]),
)

export class RuntimeExecutor implements Executor {
  readonly type = 'runtime'
  readonly boundsItsStop = true
  readonly #options: RuntimeExecutorOptions
  readonly #logs: RemoteLogs
  readonly #queue: RemoteQueue
  /** When attempts lost contact to the service (milliseconds since 1970), by id of their handles. */
  readonly #awaySince = new Map<string, number>()

  constructor(options: RuntimeExecutorOptions) {
    this.#options = options
    this.#logs = new RemoteLogs(options.service)
    this.#queue = new RemoteQueue(options.service)
  }

  parametersOf(toolName?: string): ToolParameters | undefined {
    return toolName ? PARAMETERS.get(toolName) : ANY_KIND
  }

  secretsOf(): SecretTaking {
    return { inFiles: true }
  }

  checkInput(toolName: string | undefined, input: unknown, secrets?: SecretNames): void {
    const { defaults } = this.#options
    const { body } = runtimeRequest(
      { toolName, input, timeout: undefined, secrets },
      { runtimeId: REVIEWED_ID, defaults },
    )
    reviewRequest(body)
  }

  async execute(task: ExecutableTask, context: ExecutorContext): Promise<RuntimeResult> {
    const { service, awayMs, isExpected } = this.#options
    const id = context.handle?.id ?? runtimeTaskId(task.id, context.graphId, context.attempt)
    const { body, owner } = runtimeRequest(task, { runtimeId: id, defaults: this.#defaultsFor(context.handle) })
    if (context.handle === undefined) context.handOver({ id, isTaken: false, owner })
    await context.begin()
    const attempt = new RemoteAttempt({
      ...{ service, id, owner, context, awayMs, awaySince: this.#awaySince },
      isExpected: isExpected?.() ?? false,
      killRemote: (isTaken) => this.#killRemote(id, owner, isTaken),
    })
    return outcomeOf(await attempt.run(body), service.url)
  }

  /** An attempt keeps the owner of its submission, because a restart may have changed the default. */
  #defaultsFor(handle: Handle | undefined): ContextDefaults {
    const { defaults } = this.#options
    return handle?.owner === undefined ? defaults : { ...defaults, owner: handle.owner }
  }

  killRemote(task: ExecutableTask, handle: Handle): void {
    this.#killRemote(handle.id, handle.owner ?? ownerOf(task, this.#options.defaults), handle.isTaken)
  }

  async resultSoFar({ id }: Handle, { traceId, signal }: Call): Promise<RuntimeResult> {
    const { service } = this.#options
    try {
      return resultOf(await service.look(id, traceId, signal), service.url)
    } catch (error) {
      throw error instanceof CallFailed ? failureOf(error) : error
    }
  }

  async plan(
    task: Pick<ExecutableTask, 'toolName' | 'input' | 'timeout' | 'secrets'>,
    { traceId, signal }: Call,
  ): Promise<TaskPlan> {
    const { service, defaults } = this.#options
    const { body } = runtimeRequest(task, { runtimeId: `plan-${crypto.randomUUID()}`, defaults })
    try {
      const { execution_plan } = await service.dryRun(body, traceId, signal)
      return { execution_plan }
    } catch (error) {
      throw error instanceof CallFailed ? failureOf(error) : error
    }
  }

  async *readLog({ id }: Handle, { untilOver, ...request }: LogRequest): AsyncGenerator<Uint8Array, void, void> {
    const more = untilOver === undefined ? {} : { untilOver }
    try {
      yield* this.#logs.read(id, { ...request, ...more })
    } catch (error) {
      throw error instanceof CallFailed ? failureOf(error) : error
    }
  }

  async waitingFor(handles: readonly Handle[]): Promise<ReadonlyMap<string, string>> {
    const details = new Map<string, string>()
    const isAway = ({ id }: Handle) => this.#awaySince.has(id)
    for (const { id } of handles.filter(isAway)) {
      details.set(id, `runtime away since ${isoTime(this.#awaySince.get(id)!)}`)
    }
    if (handles.every(isAway)) return details
    return new Map([...(await this.#queue.look()), ...details])
  }

  onBehalfOf({ input, handle }: Pick<ExecutableTask, 'input'> & { readonly handle?: Handle | undefined }) {
    return onBehalfOf(input, this.#defaultsFor(handle))
  }

  /** Each attempt was a separate task in the runtime service. */
  forget(task: ForgottenTask): void {
    const { attempt, handle, graph } = task
    const earlier = Array.from({ length: Math.max(0, attempt - 1) }, (_, i) => runtimeTaskId(task.id, graph.id, i + 1))
    const ids = handle === undefined ? earlier : [...earlier, handle.id]
    if (ids.length > 0) this.#options.removals.add(ids, handle?.owner ?? ownerOf(task, this.#options.defaults))
  }

  #killRemote(handle_id: string, owner: string | undefined, is_taken: boolean): void {
    this.#options.orphans.add({
      ...{ handle_id, is_taken, since: Date.now() },
      ...(owner !== undefined && { owner }),
    })
  }
}
