/** `result.json` of each ended task: its final status, beside its output. */
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { draftResultFile, publishResultFile, taskDir } from '../files/task-dir.ts'
import type { LiveTask } from '../store/live-task.ts'
import { NO_OUTPUT, readOutput } from '../store/shown-output.ts'
import { statusResponse } from '../store/status-response.ts'
import type { TaskRow } from '../store/tasks.ts'

/** Files that are retried. Beyond that the status is in the database only. */
const MAX_UNWRITTEN = 1_000

export class ResultFiles {
  readonly #dataDir: string
  readonly #log: Log
  /** Ended tasks whose file is written aside. */
  readonly #drafted = new Set<LiveTask>()
  /** Ended tasks whose file the disk did not take. */
  readonly #unwritten = new Set<LiveTask>()

  /** `dataDir` is absolute. */
  constructor(dataDir: string, log: Log) {
    this.#dataDir = dataDir
    this.#log = log
  }

  /** Makes the final status of a task, for callers that wait, and drafts its file. Never throws. */
  prepare(task: LiveTask, row: TaskRow): void {
    const dir = taskDir(this.#dataDir, task.task_id)
    try {
      const output = task.isSilent ? NO_OUTPUT : readOutput(row, dir)
      task.finalStatus = JSON.stringify(statusResponse(row, dir, output))
    } catch (error) {
      this.#warn(task, error)
      return
    }
    try {
      draftResultFile(dir, task.finalStatus)
      this.#drafted.add(task)
    } catch {
      // `write` tries again, and says why it fails
    }
  }

  /** Puts the file in its place. Never throws. */
  write(task: LiveTask): void {
    if (task.finalStatus === undefined) return
    const isDrafted = this.#drafted.delete(task)
    try {
      if (isDrafted) publishResultFile(taskDir(this.#dataDir, task.task_id))
      else this.#writeNow(task, task.finalStatus)
    } catch (error) {
      this.#warn(task, error)
      if (this.#unwritten.size < MAX_UNWRITTEN) this.#unwritten.add(task)
    }
  }

  /**
   * Retries the files that the disk did not take. Drops a task whose directory is gone or has something else of that
   * name.
   */
  writeAgain(): void {
    for (const task of this.#unwritten) {
      try {
        this.#writeNow(task, task.finalStatus!)
      } catch (error) {
        if (isDiskFault(error)) return
      }
      this.#unwritten.delete(task)
    }
  }

  /** Forgets a deleted task: another task may get its id, and a directory of the same name. */
  drop(taskId: string): void {
    for (const task of this.#unwritten) if (task.task_id === taskId) this.#unwritten.delete(task)
  }

  #writeNow(task: LiveTask, finalStatus: string): void {
    const dir = taskDir(this.#dataDir, task.task_id)
    draftResultFile(dir, finalStatus)
    publishResultFile(dir)
  }

  #warn({ task_id }: LiveTask, error: unknown): void {
    const cause = messageOf(error)
    this.#log.warn('cannot write the result file: the status is in the database', { task_id, cause })
  }
}

const isDiskFault = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO'].includes(systemCodeOf(error) ?? '')
