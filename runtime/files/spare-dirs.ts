/**
 * Directories for the next tasks, made ahead while tasks run: making the directory of a task takes longer than all other
 * work of the service before its answer. They wait under names that no task can have.
 */
import { renameSync } from 'node:fs'
import { makeSpareDir, SPARE_MARK, type TaskDir, taskDirAt, tasksDir } from './task-dir.ts'

/** Maximum directories that wait: for as many tasks that come at once. */
export const MAX_STOCKED = 4

export class SpareDirs {
  readonly #tasksDir: string
  /** Prefix of the names. Directories that an earlier service left are strays. */
  readonly #prefix = `${SPARE_MARK}${crypto.randomUUID().slice(0, 8)}-`
  readonly #spares: string[] = []
  #last = 0

  constructor(dataDir: string) {
    this.#tasksDir = tasksDir(dataDir)
  }

  /** Whether a directory of this name waits here. */
  has(name: string): boolean {
    return name.startsWith(this.#prefix)
  }

  /** Moves a directory to the path of a task. False when there is none, or the path is taken. */
  take({ task_dir }: TaskDir): boolean {
    const spare = this.#spares.pop()
    if (spare === undefined) return false
    try {
      renameSync(spare, task_dir)
      return true
    } catch {
      return false // the caller makes a directory, or says why there can be none
    }
  }

  /** Makes a directory for the next task, unless enough of them wait. Never throws. */
  stock(): void {
    if (this.#spares.length >= MAX_STOCKED) return
    const spare = `${this.#tasksDir}/${this.#prefix}${++this.#last}`
    try {
      makeSpareDir(taskDirAt(spare))
      this.#spares.push(spare)
    } catch {
      // the task that needs one makes it, or says why there can be none
    }
  }
}
