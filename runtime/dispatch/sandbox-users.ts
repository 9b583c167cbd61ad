/**
 * The users of sandboxes, where the service is root: from the reservation of a task until nothing bears its user any more.
 */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { removeIpcObjects } from '../host/ipc-objects.ts'
import { type SandboxUids, uidsOfProcesses } from '../host/sandbox-uids.ts'
import { removeShared, takeBack } from '../store/handed-files.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { TaskDir } from '../store/task-dir.ts'

/** Milliseconds until the service looks again whether a process of an ended task is gone. */
const LOOK_MS = 1_000

export class SandboxUsers {
  readonly #uids: SandboxUids
  readonly #log: Log
  #look: Timer | undefined
  /** Called when a user is free again, or may be. */
  onFree = (): void => {}

  constructor(uids: SandboxUids, log: Log) {
    this.#uids = uids
    this.#log = log
  }

  /** If not, `onFree` is called when it is worth to look again: who else has the ids does not say when it ends. */
  get hasFree(): boolean {
    if (this.#uids.hasFree) return true
    this.#look ??= setTimeout(() => {
      this.#look = undefined
      this.onFree()
    }, LOOK_MS).unref()
    return false
  }

  of(taskId: string): number | undefined {
    return this.#uids.of(taskId)
  }

  take(taskId: string): number {
    return this.#uids.take(taskId)
  }

  restore({ task_id, row: { sandbox_uid } }: LiveTask): void {
    if (sandbox_uid !== null) this.#uids.restore(task_id, sandbox_uid)
  }

  /** For a task that was never launched, and whose files go. */
  giveBack(taskId: string): void {
    this.#uids.release(taskId)
  }

  /**
   * Nothing of the task runs any more as far as its launcher knows. Resolves when its files belong to the service again. Its
   * user is given back then, or once no process has it. Never rejects.
   */
  async takeBack({ task_id, row }: LiveTask, dir: TaskDir, isCertain: boolean): Promise<void> {
    const uid = this.#uids.of(task_id)
    if (uid === undefined) return
    try {
      const { namespaces } = (JSON.parse(row.execution_plan) as ExecutionPlan).effective_sandbox
      await takeBack(dir, uid)
      if (!namespaces?.mount) await removeShared(uid)
      if (!namespaces?.ipc) removeIpcObjects(uid)
      this.#release(task_id, uid, isCertain && namespaces?.pid === true)
    } catch (error) {
      this.#log.error('the user of a sandbox cannot be given back', { task_id, uid, cause: messageOf(error) })
    }
  }

  #release(taskId: string, uid: number, isGone: boolean): void {
    if (isGone || !uidsOfProcesses().has(uid)) {
      this.#uids.release(taskId)
      this.onFree()
    } else setTimeout(() => this.#release(taskId, uid, false), LOOK_MS).unref()
  }
}
