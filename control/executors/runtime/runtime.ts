/**
 * The category `runtime`: a command or script that a runtime service runs with limits and accounting.
 *
 * The executor places the task on a runtime service of the pool, submits it there, follows its status, and kills the task
 * on cancel or timeout. The result is the final status. If control stops or is killed, the task continues in its runtime
 * service, and control follows it there again after the restart.
 */

import type { TaskPlan } from '../../../shared/contract/graph-dry-run.ts'
import { DEFAULT_RUNTIME } from '../../../shared/contract/runtime-names.ts'
import { EXECUTION_KINDS } from '../../../shared/contract/runtime-request.ts'
import type { TaskNetwork } from '../../../shared/contract/task-network.ts'
import { CallFailed } from '../../../shared/http/client.ts'
import type { SecretNames } from '../../../shared/request/secrets.ts'
import { isoTime } from '../../../shared/text/iso-time.ts'
import { isObject } from '../../../shared/text/json.ts'
import { fittingRuntimes, needOf, placementFault } from '../../rules/placement.ts'
import { runtimeParameters } from '../../rules/runtime-parameters.ts'
import type { Handle } from '../../task/rare-state.ts'
import {
  type AttemptName,
  type DelegatedTask,
  type ExecutableTask,
  ExecutionError,
  type Executor,
  type ExecutorContext,
  type FileRequest,
  type ForgottenTask,
  type LogRequest,
  type OpenFile,
  type SecretTaking,
  type ToolParameters,
} from '../executor.ts'
import { AttemptFiles } from './attempt-files.ts'
import type { RuntimeGround } from './ground.ts'
import { failureOf, outcomeOf, type RuntimeResult, resultOf, SOURCE } from './outcome.ts'
import { Placing } from './placing.ts'
import { type Away, awayText, type PoolMember } from './pool-member.ts'
import { RemoteAttempt } from './remote-attempt.ts'
import {
  type ContextDefaults,
  largestContent,
  onBehalfOf,
  ownerOf,
  type RuntimeRequest,
  runtimeRequest,
} from './request.ts'
import { reviewRequest } from './request-review.ts'
import { openTaskFile } from './task-files.ts'
import { runtimeTaskId } from './task-id.ts'

/** The request that a call belongs to, and the signal that cancels the call. */
interface Call {
  readonly traceId: string
  readonly signal: AbortSignal
}

/**
 * Id in reviewed requests, before an attempt exists. Ids of attempts are always valid, so the value does not matter.
 */
const REVIEWED_ID = 'reviewed'

/** Runtime services that are asked for the plan of a task, one after the other, until one has a plan. */
const MAX_PLANNED = 3

const ANY_KIND: ToolParameters = { label: 'runtime', schema: runtimeParameters }
const PARAMETERS: ReadonlyMap<string, ToolParameters> = new Map(
  EXECUTION_KINDS.map((kind) => [kind, { label: `runtime.${kind}`, schema: runtimeParameters }]),
)

/** Names what makes a request too large for the runtime service. */
function withRemedy(error: unknown, body: RuntimeRequest['body']): unknown {
  if (!(error instanceof ExecutionError && error.cause instanceof CallFailed)) return error
  const content = error.cause.statusCode === 413 ? largestContent(body) : undefined
  if (content === undefined) return error
  const message =
    `${content.at} has ${content.bytes} bytes, and ${error.message}: hand it over as a file of the task that makes it ` +
    '({"$from": id, "file": path} in inputs), or raise --max-body-bytes of the runtime service'
  const { cause, details } = error
  return new ExecutionError(error.code, message, {
    ...{ cause, details },
    source: SOURCE,
    retryable: false,
    isFinal: true,
  })
}

export class RuntimeExecutor implements Executor {
  readonly type = 'runtime'
  readonly boundsItsStop = true
  readonly startsLater = true
  readonly #ground: RuntimeGround
  /** Attempts without contact to their services, by id. */
  readonly #away = new Map<string, Away>()
  /** Attempts with inputs from several runtime services, or for another one, by id. */
  readonly #files = new Map<string, AttemptFiles>()
  /** Attempts that have no place yet, by id. */
  readonly #placings = new Map<string, Placing>()

  constructor(ground: RuntimeGround) {
    this.#ground = ground
  }

  parametersOf(toolName?: string): ToolParameters | undefined {
    return toolName ? PARAMETERS.get(toolName) : ANY_KIND
  }

  secretsOf(): SecretTaking {
    return { inFiles: true }
  }

  inputFault(_: string | undefined, input: unknown): string | undefined {
    return isObject(input) ? placementFault(input.placement) : undefined
  }

  checkInput(toolName: string | undefined, input: unknown, secrets?: SecretNames): void {
    const { defaults } = this.#ground
    const { body } = runtimeRequest(
      { toolName, input, timeout: undefined, secrets },
      { runtimeId: REVIEWED_ID, defaults },
    )
    reviewRequest(body)
  }

  async execute(task: ExecutableTask, context: ExecutorContext): Promise<RuntimeResult> {
    const { handle } = context
    const id = handle?.id ?? runtimeTaskId(task.id, context.graphId, context.attempt)
    const request = runtimeRequest(task, {
      ...{ runtimeId: id, defaults: this.#defaultsFor(handle) },
      ...{ tenant: context.tenant, attempt: context.attempt, trace: context.trace },
    })
    const { body, owner, placement } = request
    const files = this.#filesOf(request, context)
    if (files !== undefined) this.#files.set(id, files)
    try {
      const isNew = files !== undefined && handle === undefined
      const rule = isNew ? await files.place(placement, context.signal) : placement
      const placing = new Placing(this.#ground, { rule, need: needOf(body.limits) }, context)
      this.#placings.set(id, placing)
      const attempt = new RemoteAttempt(this.#ground, { id, owner, placing, files, away: this.#away }, context)
      const { status, member } = await attempt.run(body)
      return outcomeOf(status, member)
    } catch (error) {
      throw withRemedy(error, body)
    } finally {
      this.#placings.delete(id)
      this.#files.delete(id)
    }
  }

  /** Undefined if there is nothing to move: a task without inputs, or nowhere else to run. */
  #filesOf({ body, inputPlaces }: RuntimeRequest, context: ExecutorContext): AttemptFiles | undefined {
    const { pool } = this.#ground
    if (pool.isLone) return undefined
    // A file without a place is on the runtime service without a name, or the caller knows where it is.
    const unnamed = pool.get() === undefined ? undefined : DEFAULT_RUNTIME
    const inputs = inputPlaces.flatMap((input) => {
      const runtime = input.runtime ?? unnamed
      return runtime === undefined ? [] : [{ ...input, runtime }]
    })
    if (inputs.length === 0) return undefined
    const { tenant } = (body.control_context ?? {}) as { tenant?: string | null }
    return new AttemptFiles(this.#ground, { inputs, tenant: tenant ?? undefined }, context)
  }

  /** An attempt keeps the owner of its submission, because a restart may have changed the default. */
  #defaultsFor(handle: Handle | undefined): ContextDefaults {
    const { defaults } = this.#ground
    return handle?.owner === undefined ? defaults : { ...defaults, owner: handle.owner }
  }

  killRemote(task: ExecutableTask, handle: Handle): void {
    this.#ground.orphans.abandon({ ...handle, owner: handle.owner ?? ownerOf(task, this.#ground.defaults) })
  }

  async resultSoFar({ id, runtime }: Handle, { traceId, signal }: Call): Promise<RuntimeResult> {
    const member = this.#memberOf(runtime)
    try {
      return resultOf(await member.service.look(id, traceId, signal), member)
    } catch (error) {
      throw error instanceof CallFailed ? failureOf(error) : error
    }
  }

  async plan(
    task: Pick<ExecutableTask, 'toolName' | 'input' | 'timeout' | 'priority' | 'secrets'>,
    { traceId, signal, tenant }: Call & Pick<ExecutorContext, 'tenant'>,
  ): Promise<TaskPlan> {
    const { defaults, pool } = this.#ground
    const { body, placement } = runtimeRequest(task, {
      ...{ runtimeId: `plan-${crypto.randomUUID()}`, defaults, tenant },
    })
    const found = fittingRuntimes(pool.members, placement)
    if ('waiting' in found) return { error: found.waiting }
    let refusal: unknown
    for (const { service } of found.open.slice(0, MAX_PLANNED)) {
      try {
        const { execution_plan } = await service.dryRun(body, traceId, signal)
        return { execution_plan }
      } catch (error) {
        refusal ??= error instanceof CallFailed ? failureOf(error) : error
      }
    }
    throw refusal
  }

  async *readLog({ id, runtime }: Handle, { untilOver, ...request }: LogRequest) {
    const { logs } = this.#memberOf(runtime)
    const more = untilOver === undefined ? {} : { untilOver }
    try {
      yield* logs.read(id, { ...request, ...more })
    } catch (error) {
      throw error instanceof CallFailed ? failureOf(error) : error
    }
  }

  async readNetwork({ id, runtime }: Handle, { traceId, signal }: Call): Promise<TaskNetwork> {
    try {
      return await this.#memberOf(runtime).service.network(id, traceId, signal)
    } catch (error) {
      throw error instanceof CallFailed ? failureOf(error) : error
    }
  }

  openFile(task: DelegatedTask, request: FileRequest, call: Call): Promise<OpenFile> {
    return openTaskFile(this.#ground.pool, task, request, call)
  }

  async waitingFor(handles: readonly Handle[]): Promise<ReadonlyMap<string, string | undefined>> {
    const details = new Map<string, string | undefined>()
    const asked = new Map<PoolMember, string[]>()
    for (const { id, runtime = DEFAULT_RUNTIME } of handles) {
      const member = this.#ground.pool.get(runtime)
      const away = this.#away.get(id) ?? member?.away
      const moving = this.#files.get(id)?.waiting
      if (moving !== undefined) details.set(id, moving)
      else if (away !== undefined) details.set(id, awayText(runtime, away))
      else if (member !== undefined) asked.set(member, [...(asked.get(member) ?? []), id])
    }
    const look = async ([{ name, queue }, ids]: [PoolMember, readonly string[]]) => {
      const waitsFor = await queue.look()
      for (const id of ids) {
        const detail = waitsFor?.(id)
        if (waitsFor === undefined) details.set(id, undefined)
        else if (detail !== undefined) details.set(id, `runtime ${name}: ${detail}`)
      }
    }
    await Promise.all([...asked].map(look))
    return details
  }

  waitingHere({ id, graph, attempt }: AttemptName): string | undefined {
    const runtimeId = runtimeTaskId(id, graph.id, attempt)
    return this.#placings.get(runtimeId)?.waiting ?? this.#files.get(runtimeId)?.waiting
  }

  onBehalfOf({ input }: Pick<ExecutableTask, 'input'>, handle?: Handle) {
    return onBehalfOf(input, this.#defaultsFor(handle))
  }

  /**
   * Each attempt was a separate task in a runtime service. Records of attempts say where the last ones were. An attempt
   * that missed its start was nowhere. A task that was retried in place, and has not started since, has no handle: the record
   * of its last attempt says where that one was.
   */
  forget(task: ForgottenTask): void {
    const { attempt, rare, graph, startedAt } = task
    const { attempts = [], handle } = rare
    if (startedAt === undefined) return
    const owner = handle?.owner ?? ownerOf(task, this.#ground.defaults)
    const records = new Map(attempts.map((record) => [record.attempt, record]))
    const first = attempts.find(({ started_at }) => started_at === isoTime(startedAt))?.attempt ?? 1
    const removals: { readonly id: string; readonly runtime?: string | undefined }[] = []
    for (let i = first; i <= attempt; i++) {
      const record = records.get(i)
      if (i === attempt && (handle !== undefined || record === undefined)) break
      if (record !== undefined && record.started_at === undefined) continue
      removals.push({ id: runtimeTaskId(task.id, graph.id, i), runtime: record?.placed_on })
    }
    if (handle !== undefined) removals.push(handle)
    this.#ground.removals.add(removals, owner)
  }

  /** Throws `ExecutionError` if the runtime service was removed. */
  #memberOf(name: string = DEFAULT_RUNTIME): PoolMember {
    const member = this.#ground.pool.get(name)
    if (member !== undefined) return member
    throw new ExecutionError('external_failure', `runtime ${name} is not in the pool`, { retryable: true })
  }
}
