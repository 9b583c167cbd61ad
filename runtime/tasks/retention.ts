/**
 * Removes tasks: those whose retention is over, a few at a time so that no request waits, and those that a caller
 * deletes. Also removes staged bundles that no task has used for some time, and directories without a task, which a
 * crash can leave.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import { nextTurn } from '../../shared/process/steps.ts'
import { removeTree } from '../files/removal.ts'
import { discardTaskDir, emptyTrash, removeTaskDir, taskDir, tasksDir } from '../files/task-dir.ts'
import { hasLauncher } from '../launch/launcher-files.ts'
import { Refusal } from '../refusal.ts'
import type { Context } from './context.ts'
import { ensureOwner, type OwnersCall } from './owner.ts'

/** Tasks of one slice, whose rows are removed in one transaction. More would make others wait. */
const SLICE_TASKS = 50

type RetentionContext = Context<
  'store' | 'directory' | 'results' | 'holds' | 'staged' | 'spares' | 'dataDir' | 'log',
  'resultRetentionSecs' | 'stagedRetentionSecs' | 'gcIntervalMs'
>

export class Retention {
  readonly #context: RetentionContext
  #timer: ReturnType<typeof setTimeout> | undefined
  #isStopped = false

  constructor(context: RetentionContext) {
    this.#context = context
  }

  /** Sweeps staged bundles now, and all that is kept no longer again and again. */
  start(): void {
    const { config, log } = this.#context
    this.#sweepStaged()
    this.#timer = setTimeout(async () => {
      try {
        if (config.resultRetentionSecs > 0) await this.sweep()
      } catch (error) {
        log.error('cannot remove tasks that are kept no longer', { cause: messageOf(error) })
      }
      if (!this.#isStopped) this.start()
    }, config.gcIntervalMs)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Removes staged bundles that no task has used for some time. */
  #sweepStaged(): void {
    const { staged, directory, config, log } = this.#context
    if (directory.look() !== undefined) return
    try {
      const removed = staged.sweep(Date.now() - config.stagedRetentionSecs * 1000)
      if (removed > 0) log.info('staged files removed that are kept no longer', { removed })
    } catch (error) {
      log.error('cannot remove staged files that are kept no longer', { cause: messageOf(error) })
    }
  }

  /** Removes all tasks whose retention is over, and returns their number. Those that are held stay until the next sweep. */
  async sweep(): Promise<number> {
    const { store, directory, holds, config, log } = this.#context
    const before = Date.now() - config.resultRetentionSecs * 1000
    let removed = 0
    while (!this.#isStopped && directory.look() === undefined) {
      const due = store.endedBefore(before, SLICE_TASKS + holds.size)
      const ids = due.filter((id) => !holds.isHeld(id)).slice(0, SLICE_TASKS)
      if (ids.length > 0) await holds.removeDuring(ids, this.#removeSlice(ids))
      removed += ids.length
      if (ids.length < SLICE_TASKS) break
      await nextTurn()
    }
    if (removed > 0) log.info('tasks removed that are kept no longer', { removed })
    return removed
  }

  async #removeSlice(ids: readonly string[]): Promise<void> {
    // The directory first: while the row exists no other task can take the id, and with it the directory.
    for (const id of ids) {
      await this.#removeDirectory(id)
      await nextTurn()
    }
    await this.#context.store.remove(ids)
  }

  /**
   * Deletes an ended task for a caller. Resolves when the row is durably gone and the files are removed. Throws a
   * `Refusal` (404, 403, 409), or 503 when the removal cannot be written; the task then stays.
   */
  async delete(call: OwnersCall): Promise<void> {
    const { taskId, traceId } = call
    const { store, holds, log } = this.#context
    const row = store.get(taskId)
    if (row === undefined) throw new Refusal('not_found', `task not found: ${taskId}`)
    ensureOwner('delete', row.owner, call)
    if (store.liveTask(taskId) !== undefined) {
      throw new Refusal('conflict', `task ${taskId} has not ended (kill it, or wait for its end)`)
    }
    const underWay = holds.removalOf(taskId)
    if (underWay !== undefined) return await underWay
    const copier = holds.copierOf(taskId)
    if (copier !== undefined) {
      const { task_id } = copier
      const who =
        task_id === undefined
          ? 'another runtime service (try again when it has them)'
          : `task ${task_id} (try again when that has started, or kill it)`
      throw new Refusal('conflict', `files of task ${taskId} are being copied for ${who}`)
    }
    let trash: string | undefined
    await holds.removeDuring(
      [taskId],
      store.delete(row, () => {
        trash = this.#putAside(taskId)
      }),
    )
    log.info('task deleted', { trace_id: traceId, task_id: taskId })
    if (trash !== undefined) await this.#removeTrash(taskId, trash)
  }

  async #removeTrash(taskId: string, path: string): Promise<void> {
    try {
      await removeTree(path)
    } catch (error) {
      const cause = messageOf(error)
      this.#context.log.warn('cannot remove the files of a deleted task before the next start', {
        task_id: taskId,
        cause,
      })
    }
  }

  /** A directory that cannot be removed is moved aside until the next start, so that the others still go. */
  async #removeDirectory(id: string): Promise<void> {
    const { results, dataDir, log } = this.#context
    results.drop(id)
    try {
      await removeTaskDir(taskDir(dataDir, id))
    } catch (error) {
      log.warn('cannot remove the directory of a task', { task_id: id, cause: messageOf(error) })
      this.#putAside(id)
    }
  }

  /** The new path of the directory. Undefined where it cannot be moved, or is gone. */
  #putAside(id: string): string | undefined {
    this.#context.results.drop(id)
    try {
      return discardTaskDir(this.#context.dataDir, id)
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return undefined
      this.#context.log.warn('it stays until the next start', { task_id: id, cause: messageOf(error) })
      return undefined
    }
  }

  /** Removes directories without a task: a crash came between directory and row. */
  async removeStrays(): Promise<void> {
    const { store, spares, dataDir, log } = this.#context
    for (const name of await namesIn(tasksDir(dataDir))) {
      if (this.#isStopped) return
      // Checked just before the removal: a task of that name may have been accepted since the directory was listed.
      if (store.has(name) || spares.has(name)) continue
      // A directory whose lock cannot be checked is no task directory.
      if (hasLauncher(join(tasksDir(dataDir), name), false)) {
        log.warn('a launcher is at work in a directory that no task has: it stays', { task_id: name })
      } else discardTaskDir(dataDir, name)
    }
    await emptyTrash(dataDir)
  }
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return []
    throw error
  }
}
