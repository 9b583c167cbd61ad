/**
 * The users of sandboxes, where the service is root: from the reservation of a task until nothing bears its user any more.
 */

import { messageOf } from '../../shared/contract/errors.ts'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import type { Log } from '../../shared/logs/log.ts'
import { removeShared, takeBack } from '../files/handed-files.ts'
import type { TaskDir } from '../files/task-dir.ts'
import { removeIpcObjects } from '../host/ipc-objects.ts'
import { type SandboxUids, uidsOfProcesses } from '../host/sandbox-uids.ts'
import type { LiveTask } from '../store/live-task.ts'

/** Milliseconds until the service looks again whether a user is free. */
const LOOK_MS = 1_000

/** The same for a user whose task has ended, but not its processes, or whose files could not be taken back. */
const LOOK_PAUSES = { firstMs: LOOK_MS, longestMs: 10_000 }

/** The user of a task that has ended. */
interface LeftUser {
  readonly task_id: string
  readonly uid: number
  readonly dir: TaskDir
  readonly namespaces: ExecutionPlan['effective_sandbox']['namespaces']
  /** Whether no process can have it. */
  readonly isGone: boolean
  readonly pauses: GrowingPause
  isFaultLogged?: true
}

export class SandboxUsers {
  readonly #uids: SandboxUids
  readonly #log: Log
  #look: Timer | undefined
  #freed = Promise.withResolvers<void>()

  constructor(uids: SandboxUids, log: Log) {
    this.#uids = uids
    this.#log = log
  }

  /** Resolves when a user is free again, or may be. */
  get freed(): Promise<void> {
    return this.#freed.promise
  }

  #sayFreed(): void {
    this.#freed.resolve()
    this.#freed = Promise.withResolvers()
  }

  /** If not, `freed` resolves when it is worth to look again: who else has the ids does not say when it ends. */
  get hasFree(): boolean {
    if (this.#uids.hasFree) return true
    this.#look ??= setTimeout(() => {
      this.#look = undefined
      this.#sayFreed()
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

  /** Whether a launch of a task needs a user that the task does not have: it was reserved by a service without users. */
  lacks({ task_id, isSandboxed }: LiveTask): boolean {
    return isSandboxed && this.#uids.of(task_id) === undefined
  }

  /** For a task that was never launched, and whose files go. */
  giveBack(taskId: string): void {
    this.#uids.release(taskId)
  }

  /**
   * Nothing of the task runs any more as far as its launcher knows. Resolves when its files belong to the service again, or
   * that failed, and is tried again. Its user is given back then, or once no process has it. Never rejects.
   */
  async takeBack({ task_id, plan }: LiveTask, dir: TaskDir, isCertain: boolean): Promise<void> {
    const uid = this.#uids.leave(task_id)
    if (uid === undefined) return
    const { namespaces } = plan.effective_sandbox
    const isGone = isCertain && namespaces?.pid === true
    await this.#tryToFree({ task_id, uid, dir, namespaces, isGone, pauses: new GrowingPause(LOOK_PAUSES) }, true)
  }

  async #tryToFree(user: LeftUser, isFirst: boolean): Promise<void> {
    const { task_id, uid, pauses } = user
    let isFree = false
    try {
      isFree = user.isGone || !uidsOfProcesses().has(uid)
      // What a process leaves that has outlived its task is taken back after its end.
      if (isFirst || isFree) await this.#takeAll(user)
    } catch (error) {
      isFree = false
      if (!user.isFaultLogged) {
        this.#log.error('the user of a sandbox cannot be given back', { task_id, uid, cause: messageOf(error) })
      }
      user.isFaultLogged = true
    }
    if (isFree) {
      this.#uids.free(uid)
      this.#sayFreed()
    } else setTimeout(() => void this.#tryToFree(user, false), pauses.next()).unref()
  }

  async #takeAll({ uid, dir, namespaces }: LeftUser): Promise<void> {
    await takeBack(dir, uid)
    if (!this.#uids.isOurs(uid)) return // of the host, the rest is that of a sandbox of another service
    if (!namespaces?.mount) await removeShared(uid)
    if (!namespaces?.ipc) removeIpcObjects(uid)
  }
}
