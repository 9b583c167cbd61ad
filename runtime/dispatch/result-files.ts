/** `result.json` of each task that has ended: its final status, beside its output. */
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { NO_OUTPUT, readOutput } from '../store/output.ts'
import { statusResponse } from '../store/status-response.ts'
import { taskDir, writeResultFile } from '../store/task-dir.ts'
import type { LiveTask } from '../store/task-store.ts'
import type { TaskRow } from '../store/tasks.ts'

/** Files that are tried again; beyond that the status in the database has to do. */
const MAX_UNWRITTEN = 1_000

export class ResultFiles {
  readonly #dataDir: string
  readonly #log: Log
  /** Ended tasks without one, as the disk did not take it. */
  readonly #unwritten = new Set<LiveTask>()

  /** `dataDir` is absolute. */
  constructor(dataDir: string, log: Log) {
    this.#dataDir = dataDir
    this.#log = log
  }

  /** Makes the final status, as the file has it and those get it who wait for it. Never throws. */
  prepare(task: LiveTask, row: TaskRow): void {
    const dir = taskDir(this.#dataDir, task.task_id)
    try {
      const output = task.isSilent ? NO_OUTPUT : readOutput(row, dir)
      task.finalStatus = JSON.stringify(statusResponse(row, dir, output))
    } catch (error) {
      this.#warn(task, error)
    }
  }

  /** Writes what was prepared. Never throws. */
  write(task: LiveTask): void {
    if (task.finalStatus === undefined) return
    try {
      this.#writeNow(task, task.finalStatus)
    } catch (error) {
      this.#warn(task, error)
      if (this.#unwritten.size < MAX_UNWRITTEN) this.#unwritten.add(task)
    }
  }

  /** Those that the disk did not take. One whose directory has gone, or holds something else of that name, gets none. */
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

  /** The task is deleted: another one may get its id, and with it the directory of that name. */
  drop(taskId: string): void {
    for (const task of this.#unwritten) if (task.task_id === taskId) this.#unwritten.delete(task)
  }

  #writeNow(task: LiveTask, finalStatus: string): void {
    writeResultFile(taskDir(this.#dataDir, task.task_id), finalStatus)
  }

  #warn({ task_id }: LiveTask, error: unknown): void {
    const cause = messageOf(error)
    this.#log.warn('cannot write the result file: the status is in the database', { task_id, cause })
  }
}

const isDiskFault = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO'].includes(systemCodeOf(error) ?? '')
