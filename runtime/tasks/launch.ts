/** A launch of a task: its launcher is asked for, and heard of again when the launch is over. */
import { existsSync } from 'node:fs'
import { messageOf } from '../../shared/contract/errors.ts'
import { SecretCommandFault } from '../../shared/files/secret-command.ts'
import type { SecretFile } from '../../shared/files/secret-values.ts'
import { SecretFault } from '../../shared/files/secrets-directory.ts'
import { OF_SECRETS } from '../../shared/request/secrets.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { handOver, letPass } from '../files/handed-files.ts'
import { writeSecretFiles } from '../files/secret-files.ts'
import { hasWorkspace, makeTaskDir, type TaskDir, taskDirId } from '../files/task-dir.ts'
import type { Asked, TaskError } from '../launch/classification.ts'
import type { Launcher, LauncherEnd } from '../launch/launcher-host.ts'
import type { LauncherEvent } from '../launch/notify.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Ground } from './context.ts'
import type { Force } from './force.ts'
import { askedOf, launchPlan, lostCapability, planWithoutLostDefault, taskEnvironment } from './launch-plan.ts'
import type { Networks } from './networks.ts'
import { taskDirContent } from './task-dir-content.ts'

/** A fault that kept a launcher from writing any record. */
type LauncherFault = Extract<LauncherEvent, { event: 'failed' }>

/** A launcher that was asked for, and what is known of it. */
export class Launch {
  readonly launcher: Launcher
  /** The request as far as the end of the task depends on it. Undefined for a launch of an earlier service. */
  readonly asked: Asked | undefined
  /** When the launcher was asked for, or taken over from an earlier service. */
  readonly launchedMs: number
  /** When this service heard that the process of the task was started. Undefined where it did not, or an earlier one did. */
  startedMs: number | undefined
  /** The launcher did not end the task in time, so the service is killing both. */
  isForced = false
  readonly #outcome = Promise.withResolvers<LauncherEnd>()
  readonly #fault = Promise.withResolvers<LauncherFault>()

  constructor(launcher: Launcher, asked: Asked | undefined, launchedMs: number = performance.now()) {
    this.launcher = launcher
    this.asked = asked
    this.launchedMs = launchedMs
  }

  get isAdopted(): boolean {
    return this.asked === undefined
  }

  /** Resolves once the outcome is written, or the launcher is gone. The outcome may not be synced yet. */
  get over(): Promise<LauncherEnd> {
    return Promise.race([this.launcher.gone, this.#outcome.promise])
  }

  get fault(): Promise<LauncherFault> {
    return this.#fault.promise
  }

  /** What the launcher and its fork server say. */
  heard(event: LauncherEvent): void {
    this.launcher.heard?.(event)
    if (event.event === 'failed') this.#fault.resolve(event)
    else if (event.event === 'ended') this.outcomeSeen()
  }

  /** The outcome is there. */
  outcomeSeen(): void {
    this.#outcome.resolve({})
  }
}

/** The launcher of a task that an earlier service started. Its lock is checked, because no message reports its end. */
export function adoptedLauncher(isAlive: () => boolean, wasAlive: boolean): Launcher {
  const { promise: gone, resolve } = Promise.withResolvers<LauncherEnd>()
  if (!wasAlive) resolve({})
  const lookAround = () => {
    const isAliveNow = isAlive()
    if (!isAliveNow) resolve({})
    return isAliveNow
  }
  return { gone, lookAround }
}

export type LaunchContext = Pick<
  Ground,
  'launchers' | 'settings' | 'cgroups' | 'capabilities' | 'store' | 'records' | 'secrets' | 'users'
> & { readonly force: Force; readonly networks: Networks }

/**
 * Asks for the launcher of a task whose reservation is durable. `given` is its request if it was accepted just now;
 * without it the stored request is read, and the directory of the task is checked. Never throws.
 */
export function launchTask(
  { launchers, settings, cgroups, capabilities, store, records, force, secrets, networks, users }: LaunchContext,
  task: LiveTask,
  given: TaskRequest | undefined,
): Launch | { readonly error: TaskError } {
  try {
    const request = given ?? store.requestOf(task.task_id)
    task.outputs = request.outputs ?? null
    const dir = records.dirOf(task)
    const plan = planWithoutLostDefault(task.plan, request.limits, capabilities)
    if (given === undefined) {
      const lost = lostCapability(plan, request.limits, capabilities)
      if (lost !== undefined) return { error: setupFailed(lost) }
      // Its inputs were just copied.
      if (request.inputs === undefined) ensureTaskDir(dir, request)
    }
    const uid = users?.of(task.task_id)
    if (uid !== undefined) {
      handOver(dir, request.sandbox.workspace_subdir ?? '', uid)
      if (!plan.effective_sandbox.namespaces?.mount) letPass(records.dataDir, dir, uid)
    }
    const surroundings = {
      ...{ dir, dirId: taskDirId(dir.task_dir) },
      ...{ cgroup: cgroups?.forTask(task.task_id), mark: force.markOf(task.task_id) },
      ...{ uid, egressSocket: networks.open(task), certificates: networks.certificates(task) },
    }
    const values = request.secrets && secrets.values(request.secrets, request)
    writeSecrets(task, dir, uid, [...(values?.files ?? []), ...surroundings.certificates])
    const asked = askedOf(request, plan, dir, settings)
    const launched = launchers.launch(
      launchPlan(request, plan, surroundings, settings, values),
      taskEnvironment(request, plan, surroundings, settings, values),
    )
    return 'error' in launched ? launched : new Launch(launched.launcher, asked)
  } catch (error) {
    return { error: cannotStart(error) }
  }
}

/** Makes the directory of a task that waited unless it can be used: it may be gone, or never have reached the disk. Throws. */
export function ensureTaskDir(dir: TaskDir, request: TaskRequest): void {
  if (existsSync(dir.request_path) && hasWorkspace(dir)) return
  makeTaskDir(dir, taskDirContent(request, JSON.stringify(request)))
}

/** The task notes the files once they are there: what stands in their place otherwise is not ours to remove. */
function writeSecrets(task: LiveTask, dir: TaskDir, uid: number | undefined, files: readonly SecretFile[]): void {
  if (files.length === 0) return
  writeSecretFiles(dir, files, uid)
  task.secretFiles = files.map(({ names }) => names)
}

const setupFailed = (lost: string): TaskError => ({
  code: 'sandbox_setup_failed',
  message: `${lost} (it was there when the task was accepted)`,
})

export function cannotStart(cause: unknown): TaskError {
  if (cause instanceof SecretFault) return { code: 'invalid_input', message: cause.message, details: OF_SECRETS }
  if (cause instanceof SecretCommandFault)
    return { code: 'launch_failed', message: cause.message, details: cause.details }
  return { code: 'launch_failed', message: `cannot start the launcher of the task: ${messageOf(cause)}` }
}
