/** Starting a task: its launcher is asked for, and heard of again when the launch is over. */
import { existsSync } from 'node:fs'
import { messageOf } from '../../shared/contract/errors.ts'
import type { SecretValues } from '../../shared/files/secret-values.ts'
import { SecretFault } from '../../shared/files/secrets-directory.ts'
import { OF_SECRETS } from '../../shared/request/secrets.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { handOver, letPass } from '../files/handed-files.ts'
import { writeSecretFiles } from '../files/secret-files.ts'
import { hasWorkspace, makeTaskDir, type TaskDir, taskDirId } from '../files/task-dir.ts'
import type { TaskCgroups } from '../host/task-cgroups.ts'
import type { TaskError } from '../launch/classification.ts'
import type { LauncherHost } from '../launch/launcher-host.ts'
import type { CapabilitySet } from '../plan/capability-set.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Secrets } from '../store/secrets.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { Ends } from './end.ts'
import type { Ending } from './ending.ts'
import { type Flight, Launch } from './flight.ts'
import type { Force } from './force.ts'
import { askedOf, type LaunchSettings, launchPlan, taskEnvironment } from './launch-plan.ts'
import { refusalOf } from './launch-refusal.ts'
import type { LauncherRecords } from './launcher-records.ts'
import { lostCapability, planWithoutLostDefault } from './lost-capability.ts'
import type { Networks } from './networks.ts'
import type { SandboxUsers } from './sandbox-users.ts'
import { taskDirContent } from './task-dir-content.ts'

export interface StartsOptions {
  readonly host: LauncherHost
  readonly settings: LaunchSettings
  /** Undefined where cgroups are disabled. */
  readonly cgroups: Pick<TaskCgroups, 'forTask'> | undefined
  readonly capabilities: CapabilitySet
  readonly store: TaskStore
  readonly records: LauncherRecords
  readonly ends: Ends
  readonly force: Pick<Force, 'markOf'>
  readonly secrets: Secrets
  readonly networks: Pick<Networks, 'open'>
  /** Undefined where tasks have the user of the service. */
  readonly users: Pick<SandboxUsers, 'of'> | undefined
}

export class Starts {
  readonly #options: StartsOptions

  constructor(options: StartsOptions) {
    this.#options = options
  }

  /**
   * Starts the launcher of a task whose reservation is durable. Returns how the task ended, or that the machine refused
   * it. `given` is its request if it was accepted just now; without it the stored request is read, and the directory of
   * the task is checked. Never rejects.
   */
  async run(flight: Flight, given?: TaskRequest): Promise<Ending> {
    const launched = this.#launch(flight.task, given)
    if ('error' in launched) return { status: 'failed', error: launched.error, finishedAt: Date.now() }
    flight.launched(launched)
    return await this.finish(flight, launched)
  }

  #launch(task: LiveTask, given: TaskRequest | undefined): Launch | { readonly error: TaskError } {
    const { host, settings, cgroups, capabilities, store, records, force, secrets, networks, users } = this.#options
    try {
      const request = given ?? store.requestOf(task.task_id)
      task.outputs = request.outputs ?? null
      const dir = records.dirOf(task)
      const plan = planWithoutLostDefault(task.plan, request.limits, capabilities)
      if (given === undefined) {
        const lost = lostCapability(plan, request.limits, capabilities)
        if (lost !== undefined) return { error: setupFailed(lost) }
        // Its inputs were just copied.
        if (request.inputs === undefined) this.#remakeUnlessUsable(dir, request)
      }
      const uid = users?.of(task.task_id)
      if (uid !== undefined) {
        handOver(dir, request.sandbox.workspace_subdir ?? '', uid)
        if (!plan.effective_sandbox.namespaces?.mount) letPass(records.dataDir, dir, uid)
      }
      const context = {
        ...{ dir, dirId: taskDirId(dir.task_dir) },
        ...{ cgroup: cgroups?.forTask(task.task_id), mark: force.markOf(task.task_id) },
        ...{ uid, egressSocket: networks.open(task) },
      }
      const values = request.secrets && secrets.values(request.secrets, request.execution)
      if (values !== undefined) this.#writeSecretFiles(task, dir, uid, values)
      const asked = askedOf(request, plan, dir, settings)
      const launched = host.launch(
        launchPlan(request, plan, context, settings),
        taskEnvironment(request, plan, context, settings, values),
      )
      return 'error' in launched ? launched : new Launch(launched.launcher, asked)
    } catch (error) {
      return { error: cannotStart(error) }
    }
  }

  /** Sees to the directory of a task that gets inputs, before they are copied. Throws when it cannot be made. */
  ensureDirectory(task: LiveTask, request: TaskRequest): void {
    this.#remakeUnlessUsable(this.#options.records.dirOf(task), request)
  }

  /** The task notes the files once they are there: what stands in their place otherwise is not ours to remove. */
  #writeSecretFiles(task: LiveTask, dir: TaskDir, uid: number | undefined, { files }: SecretValues): void {
    if (files.length === 0) return
    writeSecretFiles(dir, files, uid)
    task.secretFiles = files.map(({ names }) => names)
  }

  /** Resolves with the end of the task of a launch, or with the refusal of the machine. Never rejects. */
  async finish(flight: Flight, launch: Launch): Promise<Ending> {
    const ending = await this.#options.ends.afterLaunch(flight, launch)
    // The next launch needs the lock of the task, which this launcher holds until it is gone.
    if (refusalOf(ending) !== undefined) await launch.launcher.gone
    return ending
  }

  /**
   * A task that waited is launched from the database: its directory may be gone, or never have reached the disk.
   */
  #remakeUnlessUsable(dir: TaskDir, request: TaskRequest): void {
    if (existsSync(dir.request_path) && hasWorkspace(dir)) return
    makeTaskDir(dir, taskDirContent(request, JSON.stringify(request)))
  }
}

const setupFailed = (lost: string): TaskError => ({
  code: 'sandbox_setup_failed',
  message: `${lost} (it was there when the task was accepted)`,
})

const cannotStart = (cause: unknown): TaskError =>
  cause instanceof SecretFault
    ? { code: 'invalid_input', message: cause.message, details: OF_SECRETS }
    : { code: 'launch_failed', message: `cannot start the launcher of the task: ${messageOf(cause)}` }
