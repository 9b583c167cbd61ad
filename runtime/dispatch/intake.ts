/**
 * A request to an accepted task. The steps are those of the specification, in its order: validate, plan, capacity and
 * quota, queue length; a duplicate id is found last. What is refused leaves nothing behind, on disk or in the ledger.
 */
import { realpathSync, statSync } from 'node:fs'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import type { CapabilityMode } from '../../shared/contract/runtime-request.ts'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { SandboxPaths } from '../host/sandbox-paths.ts'
import type { CapabilitySet } from '../intake/capability-set.ts'
import { planTask } from '../intake/plan.ts'
import { shortened } from '../intake/text.ts'
import { readRequest, type TaskRequest } from '../intake/validate.ts'
import { reservationFor } from '../ledger/amounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { invalidInput, Refusal } from '../refusal.ts'
import type { NewEvent } from '../store/events.ts'
import { unavailable } from '../store/group-commit.ts'
import { stopping } from '../store/readiness.ts'
import { letPass, makeTaskDir, removeTaskDirNow, taskDir } from '../store/task-dir.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { TaskRow } from '../store/tasks.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { SandboxSettings } from './launch-plan.ts'
import type { Launches, PreparedLaunch } from './launches.ts'
import { needsPassage, taskDirContent } from './task-dir-content.ts'
import type { Totals } from './totals.ts'

export interface IntakeOptions {
  readonly store: TaskStore
  readonly ledger: Ledger
  readonly dispatcher: Dispatcher
  readonly launches: Launches
  readonly capabilities: CapabilitySet
  readonly defaultCapabilityMode: CapabilityMode
  readonly maxQueuedTasks: number
  readonly totals: Totals
  /** Absolute. */
  readonly dataDir: string
  readonly sandbox: SandboxSettings
  readonly log: Log
}

export class Intake {
  readonly #options: IntakeOptions
  /** Tasks whose acceptance is being written and that will wait for their place. */
  #arriving = 0
  #isStopping = false

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  /** Nothing is taken in any more. */
  stop(): void {
    this.#isStopping = true
  }

  /** The id of the task that `body` describes, once it is durable. Throws a `Refusal`, or 503. */
  async submit(body: Uint8Array, traceId: string): Promise<string> {
    if (this.#isStopping) throw stopping()
    const { store, ledger, dispatcher, launches, capabilities, defaultCapabilityMode, maxQueuedTasks, totals, log } =
      this.#options
    const request = readRequest(body, crypto.randomUUID())
    checkRootfs(request)
    const plan = planTask(request, capabilities, { capability_mode: defaultCapabilityMode })
    checkRootIsShown(plan, this.#options.sandbox)
    const { tenant } = request.control_context
    const asking = { tenant, reservation: reservationFor(request.limits) }
    ledger.ensureCanEverFit(asking)

    // Whoever comes while others wait goes to the end of their queue, however little it asks for.
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

    const row = newRow({ request, plan, reservation: asking.reservation, traceId })
    const events = acceptanceEvents(row, plan)
    const place = startsNow ? dispatcher.reserve({ task_id, ...asking }) : undefined
    if (place === undefined) this.#arriving++
    try {
      const text = JSON.stringify(request)
      this.#makeDirectory(request, text, plan)
      let prepared: PreparedLaunch | undefined
      const task = await store.accept(
        { ...row, ...place?.patch },
        { request: text, events: [...events, ...(place?.events ?? [])] },
        {
          meanwhile: (arriving) => {
            if (place !== undefined) prepared = launches.prepare(arriving, request)
          },
          forgotten: () => this.#removeDirectory(task_id),
        },
      )
      if (prepared === undefined) dispatcher.enqueue(task)
      else dispatcher.launch(task, prepared)
      totals.accepted()
      log.info('task accepted', { trace_id: traceId, task_id })
      return task_id
    } catch (error) {
      if (place !== undefined) dispatcher.giveBack(task_id)
      // Nobody may have this id until nothing is left of it.
      if (!store.has(task_id)) this.#removeDirectory(task_id)
      throw error
    } finally {
      if (place === undefined) this.#arriving--
    }
  }

  /** What a disk that takes nothing does not let us remove goes when the next service begins. */
  #removeDirectory(task_id: string): void {
    const { dataDir, log } = this.#options
    try {
      removeTaskDirNow(taskDir(dataDir, task_id))
    } catch (error) {
      log.warn('cannot remove the directory of a task that was refused', { task_id, cause: messageOf(error) })
    }
  }

  #makeDirectory(request: TaskRequest, text: string, plan: ExecutionPlan): void {
    const { dataDir, sandbox } = this.#options
    const sandboxUid = sandbox.user?.uid
    const dir = taskDir(dataDir, request.task_id)
    try {
      makeTaskDir(dir, taskDirContent(request, text, plan, sandboxUid))
      if (needsPassage(plan, sandboxUid)) letPass(dataDir, dir)
    } catch (error) {
      throw unavailable(error)
    }
  }
}

/** What only the host can say of a request. It is looked at again when the task starts. */
function checkRootfs({ sandbox: { rootfs } }: TaskRequest): void {
  if (rootfs === undefined) return
  const found = asRootfs(rootfs, () => statSync(rootfs, { throwIfNoEntry: false }))
  if (found?.isDirectory()) return
  throw invalidInput(`sandbox.rootfs ${rootfs} is ${found === undefined ? 'not there' : 'no directory'} on this host`)
}

/** A part of the host that is hidden from tasks is no root for them either. */
function checkRootIsShown({ effective_sandbox: { rootfs } }: ExecutionPlan, { masks, exposed }: SandboxPaths): void {
  if (rootfs === undefined) return
  const root = asRootfs(rootfs, () => realpathSync(rootfs))
  const mask = masks.find((mask) => isWithin(root, mask))
  if (mask === undefined || exposed.some((path) => isWithin(root, path) && isWithin(path, mask))) return
  throw invalidInput(
    `sandbox.rootfs ${rootfs} lies in ${mask}, which is hidden from tasks (have it shown with --sandbox-expose, or put it elsewhere)`,
  )
}

const PATH_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'a part of its path is no directory',
  EACCES: 'the service may not pass a directory on its path (let its user pass, or put the root elsewhere)',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'a name in its path is too long',
}

/** What `look` finds out; a path that the host will not follow is a fault of the request. */
function asRootfs<T>(rootfs: string, look: () => T): T {
  try {
    return look()
  } catch (error) {
    const reason = PATH_FAULTS[systemCodeOf(error) ?? ''] ?? messageOf(error)
    throw invalidInput(`sandbox.rootfs ${shortened(rootfs)} cannot be used on this host: ${reason}`)
  }
}

const isWithin = (path: string, top: string): boolean => `${path}/`.startsWith(`${top.replace(/\/$/, '')}/`)

interface NewTask {
  readonly request: TaskRequest
  readonly plan: ExecutionPlan
  readonly reservation: object
  readonly traceId: string
}

function newRow({ request, plan, reservation, traceId }: NewTask): Omit<TaskRow, 'ordinal'> {
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
    limits: JSON.stringify(request.limits),
    is_script: request.execution.kind === 'script' ? 1 : 0,
    metadata: Object.keys(request.metadata).length === 0 ? null : JSON.stringify(request.metadata),
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
