/**
 * What is kept no longer: the rows and the directory of tasks that ended long ago, and directories of tasks that never
 * came to be. A few at a time, so that nobody waits for it.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { nextTurn } from '../../shared/slices.ts'
import { isLauncherAlive } from '../launcher/spawn.ts'
import { discardTaskDir, emptyTrash, removeTaskDir, taskDir, tasksDir } from '../store/task-dir.ts'
import type { TaskStore } from '../store/task-store.ts'

/** Tasks of one slice, whose rows go in one transaction. More makes others wait for it. */
const SLICE_TASKS = 50

export interface RetentionOptions {
  readonly store: TaskStore
  readonly dataDir: string
  readonly retentionSecs: number
  readonly intervalMs: number
  readonly log: Log
}

export class Retention {
  readonly #options: RetentionOptions
  #timer: ReturnType<typeof setTimeout> | undefined
  #isStopped = false

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setTimeout(async () => {
      try {
        await this.sweep()
      } catch (error) {
        this.#options.log.error('cannot remove tasks that are kept no longer', { cause: messageOf(error) })
      }
      if (!this.#isStopped) this.start()
    }, this.#options.intervalMs)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Removes all that is due now; how many tasks that were. */
  async sweep(): Promise<number> {
    const { store, retentionSecs, log } = this.#options
    const before = Date.now() - retentionSecs * 1000
    let removed = 0
    while (!this.#isStopped) {
      const ids = store.endedBefore(before, SLICE_TASKS)
      // The directory first: while there is a row, nobody else can take the id and with it the directory.
      for (const id of ids) await this.#removeDirectory(id)
      if (ids.length > 0) await store.remove(ids)
      removed += ids.length
      if (ids.length < SLICE_TASKS) break
      await nextTurn()
    }
    if (removed > 0) log.info('tasks removed that are kept no longer', { removed })
    return removed
  }

  /** One that will not go is put aside until the next start: it must not keep all others from going. */
  async #removeDirectory(id: string): Promise<void> {
    const { dataDir, log } = this.#options
    try {
      await removeTaskDir(taskDir(dataDir, id))
    } catch (error) {
      log.warn('cannot remove the directory of a task', { task_id: id, cause: messageOf(error) })
      this.#putAside(id)
    }
  }

  #putAside(id: string): void {
    try {
      discardTaskDir(this.#options.dataDir, id)
    } catch (error) {
      this.#options.log.warn('it stays until the next start', { task_id: id, cause: messageOf(error) })
    }
  }

  /** Removes directories that no task has: a crash came between them and their row. */
  async removeStrays(): Promise<void> {
    const { store, dataDir, log } = this.#options
    for (const name of await namesIn(tasksDir(dataDir))) {
      if (this.#isStopped) return
      // Asked just before it goes: a task of that name may have been accepted since the directory was read.
      if (store.has(name)) continue
      if (hasLauncher(join(tasksDir(dataDir), name))) {
        log.warn('a launcher is at work in a directory that no task has: it stays', { task_id: name })
      } else discardTaskDir(dataDir, name)
    }
    await emptyTrash(dataDir)
  }
}

/** What cannot be asked is no directory of a task. */
function hasLauncher(path: string): boolean {
  try {
    return isLauncherAlive(path)
  } catch {
    return false
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
