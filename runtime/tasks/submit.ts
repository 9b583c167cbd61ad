/**
 * Turns a request into an accepted task. The steps are those of the specification, in its order: validate, plan,
 * capacity and quota, queue length, duplicate id. A refused request leaves nothing behind, on disk or in the ledger. A
 * dry run takes the same steps and stops before anything is kept.
 */

import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { SecretCommandFault } from '../../shared/files/secret-command.ts'
import { SecretFault } from '../../shared/files/secrets-directory.ts'
import type { Caller } from '../../shared/http/callers.ts'
import { hasOpenedRules } from '../../shared/request/network-rules.ts'
import { OF_SECRETS } from '../../shared/request/secrets.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { unavailable } from '../files/disk-fault.ts'
import { makeTaskDir, removeTaskDirNow, taskDir } from '../files/task-dir.ts'
import type { PathLooks } from '../host/path-looks.ts'
import { reservationFor } from '../ledger/amounts.ts'
import type { Asking } from '../ledger/ledger.ts'
import { type PlanSettings, planTask } from '../plan/plan.ts'
import { acceptableRequest, ensureFiles } from '../plan/request.ts'
import { invalidInput, Refusal } from '../refusal.ts'
import type { NewEvent } from '../store/events.ts'
import type { Terms } from '../store/live-task.ts'
import { type Readiness, stopping } from '../store/readiness.ts'
import type { TaskRow } from '../store/tasks.ts'
import type { Context } from './context.ts'
import type { Dispatcher } from './dispatcher.ts'
import { type Inputs, plannedInputs } from './inputs.ts'
import type { LateSubmissions } from './late-submissions.ts'
import type { Networks } from './networks.ts'
import { checkRootIsShown, realRootOf } from './rootfs-checks.ts'
import { taskDirContent } from './task-dir-content.ts'

type SubmissionsContext = Context<
  | 'store'
  | 'ledger'
  | 'capabilities'
  | 'settings'
  | 'secrets'
  | 'authority'
  | 'totals'
  | 'dataDir'
  | 'directory'
  | 'spares'
  | 'log',
  'maxQueuedTasks' | 'unknownFields'
> & {
  readonly dispatcher: Dispatcher
  readonly networks: Networks
  readonly inputs: Inputs
  readonly late: Pick<LateSubmissions, 'check'>
  readonly planSettings: PlanSettings
  readonly looks: PathLooks
  readonly readiness: Readiness
}

export class Submissions {
  readonly #context: SubmissionsContext
  /** Tasks whose acceptance is being written, and that will wait in the queue. */
  #arriving = 0
  #isStopping = false

  constructor(context: SubmissionsContext) {
    this.#context = context
  }

  /** Refuses all further requests. */
  stop(): void {
    this.#isStopping = true
  }

  /**
   * The id of the task that `body` describes, once it is durable. `notAfter` is the time until which it may be accepted
   * (`LateSubmissions`). A task without an owner gets the name of the caller as its owner. Throws a `Refusal`, or 503.
   */
  async submit(body: Uint8Array, traceId: string, { notAfter, by }: Submission = {}): Promise<string> {
    const { request, rootfs } = await this.#decode(body, by)
    // Whoever hears that the task exists looks for it, and must find it.
    await this.#context.store.decided(request.task_id)
    if (this.#isStopping) throw stopping()
    const { plan, asking, startsNow } = this.#check(request, rootfs)
    this.#context.late.check(request.task_id, notAfter)
    const { store, dispatcher, networks, totals, readiness, log } = this.#context
    const { task_id } = request
    const terms = { plan, limits: request.limits, reservation: asking.reservation }
    const row = newRow(request, terms, traceId)
    const events = acceptanceEvents(row, plan)
    const reserved = startsNow ? dispatcher.reserve({ task_id, ...asking }, request.inputs !== undefined) : undefined
    if (reserved === undefined) this.#arriving++
    const text = JSON.stringify(request)
    try {
      this.#makeDirectory(request, text)
      const task = await store.accept(
        { ...row, ...reserved?.patch },
        { request: text, terms, events: [...events, ...(reserved?.events ?? [])] },
        () => this.#removeDirectory(task_id),
      )
      task.priority = request.priority ?? 0
      if (reserved === undefined) dispatcher.enqueue(task)
      else dispatcher.launch(task, request)
      totals.accepted()
      readiness.accepted()
      this.#stockSoon()
      log.info('task accepted', { trace_id: traceId, task_id })
      return task_id
    } catch (error) {
      if (error instanceof ServiceError && error.status === 503) readiness.refused(text.length)
      networks.forget(task_id)
      if (reserved !== undefined) dispatcher.giveBack(task_id)
      // Another task may get this id only once nothing is left of this one.
      if (!store.has(task_id)) this.#removeDirectory(task_id)
      throw error
    } finally {
      if (reserved === undefined) this.#arriving--
    }
  }

  /** The plan of the task that `body` describes. Keeps nothing. Throws what `submit` would. */
  async dryRun(body: Uint8Array): Promise<ExecutionPlan> {
    const { request, rootfs } = await this.#decode(body)
    const { plan } = this.#check(request, rootfs)
    await this.#context.readiness.check()
    return plan
  }

  async #decode(body: Uint8Array, by?: Caller): Promise<{ request: TaskRequest; rootfs: string | undefined }> {
    if (this.#isStopping) throw stopping()
    const request = owned(acceptableRequest(body, crypto.randomUUID(), this.#context.config.unknownFields), by)
    await this.#checkSecrets(request)
    const { network } = request.sandbox
    if (typeof network === 'object' && hasOpenedRules(network)) await this.#context.authority.prepare()
    return { request, rootfs: await this.#lookAtRootfs(request) }
  }

  /** Whether the task can have its secrets. Their values are read again when it starts. */
  async #checkSecrets(request: TaskRequest): Promise<void> {
    const { secrets } = request
    const known = this.#context.secrets
    try {
      await known.ready(request)
      if (secrets !== undefined) known.values(secrets, request)
      await known.checkCarried(request)
    } catch (error) {
      if (error instanceof SecretCommandFault) throw new Refusal('unavailable', error.message, error.details)
      throw error instanceof SecretFault ? invalidInput(error.message, OF_SECRETS) : error
    }
  }

  /** Every check that needs no disk. Synchronous, so what it finds holds until the caller waits for something. */
  #check(request: TaskRequest, rootfs: string | undefined): Admission {
    const { store, inputs, ledger, dispatcher, capabilities, planSettings, config, settings } = this.#context
    const { maxQueuedTasks } = config
    const plan = planTask(request, capabilities, planSettings)
    ensureFiles(request, process.platform)
    inputs.check(request)
    if (rootfs !== undefined) checkRootIsShown(plan, rootfs, settings.sandbox)
    const { tenant } = request.control_context
    const isSandboxed = plan.effective_sandbox.profile === 'linux_sandbox'
    const asking = { tenant, reservation: reservationFor(request.limits), isSandboxed }
    ledger.ensureCanEverFit(asking)

    // While others wait a task goes to the end of the queue, however little it asks for.
    const startsNow = this.#arriving === 0 && dispatcher.hasRoomFor(asking)
    if (!startsNow && dispatcher.waitingCount + this.#arriving >= maxQueuedTasks) {
      throw new Refusal(
        'resource_limit_exceeded',
        `the queue is full: ${maxQueuedTasks} tasks wait (try again later, or have --max-queued-tasks raised)`,
        { max_queued_tasks: maxQueuedTasks },
      )
    }
    const { task_id } = request
    if (store.has(task_id)) throw new Refusal('conflict', `task ${task_id} already exists`)
    return { plan, asking, startsNow }
  }

  /**
   * The real path of the `rootfs` of a task, where it has one. A `rootfs` that is no directory is refused even if the
   * task does not use it, as it may be a mistake. The launcher checks again when the task starts.
   */
  async #lookAtRootfs({ sandbox: { rootfs } }: TaskRequest): Promise<string | undefined> {
    if (rootfs === undefined) return undefined
    const realPath = await realRootOf(this.#context.looks, rootfs)
    if (this.#isStopping) throw stopping()
    return realPath
  }

  /** If the disk does not let us remove the directory, the next service removes it when it starts. */
  #removeDirectory(task_id: string): void {
    const { dataDir, directory, log } = this.#context
    if (directory.look() !== undefined) return // the directory may belong to a task of another service
    try {
      removeTaskDirNow(taskDir(dataDir, task_id))
    } catch (error) {
      log.warn('cannot remove the directory of a task that was refused', { task_id, cause: messageOf(error) })
    }
  }

  /** Makes a directory for the next task while this one runs. */
  #stockSoon(): void {
    const { directory, spares } = this.#context
    setImmediate(() => {
      if (directory.look() === undefined) spares.stock()
    })
  }

  #makeDirectory(request: TaskRequest, text: string): void {
    const { dataDir, directory, spares } = this.#context
    directory.ensure()
    const dir = taskDir(dataDir, request.task_id)
    try {
      makeTaskDir(dir, taskDirContent(request, text), spares)
    } catch (error) {
      throw unavailable(error)
    }
  }
}

interface Submission {
  readonly notAfter?: string | undefined
  /** Undefined: the token of the service, or none where none is needed. */
  readonly by?: Caller | undefined
}

/** The results of the checks of a request. */
interface Admission {
  readonly plan: ExecutionPlan
  readonly asking: Asking
  /** Whether there is room for the task, and no task waits before it. */
  readonly startsNow: boolean
}

function owned(request: TaskRequest, by: Caller | undefined): TaskRequest {
  if (by === undefined || request.control_context.owner !== undefined) return request
  return { ...request, control_context: { ...request.control_context, owner: by.grant.name } }
}

function newRow(request: TaskRequest, { plan, limits, reservation }: Terms, traceId: string): Omit<TaskRow, 'ordinal'> {
  const now = Date.now()
  const { tenant, owner } = request.control_context
  return {
    task_id: request.task_id,
    status: 'accepted',
    tenant: tenant ?? null,
    owner: owner ?? null,
    trace_id: traceId,
    created_at: now,
    updated_at: now,
    reserved_at: null,
    released_at: null,
    started_at: null,
    finished_at: null,
    launch_boot_id: null,
    kill_requested_at: null,
    launcher_pid: null,
    pid: null,
    pgid: null,
    exit_code: null,
    exit_signal: null,
    error: null,
    usage: null,
    execution_plan: JSON.stringify(plan),
    reservation: JSON.stringify(reservation),
    limits: JSON.stringify(limits),
    is_script: request.execution.kind === 'script' ? 1 : 0,
    metadata: Object.keys(request.metadata).length === 0 ? null : JSON.stringify(request.metadata),
    inputs: plannedInputs(request.inputs),
    stdout_bytes: null,
    stderr_bytes: null,
    sandbox_uid: null,
  }
}

function acceptanceEvents(
  { created_at: timestamp, status }: Omit<TaskRow, 'ordinal'>,
  plan: ExecutionPlan,
): NewEvent[] {
  const { capability_mode, effective_sandbox, degraded, fallback_reasons } = plan
  const events: NewEvent[] = [
    { event_type: 'submitted', message: 'task submitted', timestamp },
    { event_type: 'accepted', message: 'task accepted', data: { status }, timestamp },
    {
      event_type: 'planned',
      message: `planned with profile ${effective_sandbox.profile}`,
      data: { capability_mode, profile: effective_sandbox.profile, degraded },
      timestamp,
    },
  ]
  if (degraded) {
    events.push({ event_type: 'degraded', message: fallback_reasons.join('; '), data: { fallback_reasons }, timestamp })
  }
  return events
}
