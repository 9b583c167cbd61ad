/** Reads the records of launchers in the directories of tasks, and whether the launchers are alive. */
import { readlinkSync } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { isThere, isZombie, processStat } from '../../shared/process/processes.ts'
import { type TaskDir, taskDir } from '../files/task-dir.ts'
import {
  hasBegun,
  isLauncherAlive,
  readRecord,
  removeRecord,
  requestKill,
  type TaskRecord,
} from '../launch/launcher-files.ts'
import type { LaunchedProcess } from '../launch/outcome.ts'
import type { LiveTask } from '../store/live-task.ts'
import { type StartedProcess, startedProcess } from './ending.ts'

/**
 * Errors after which no launcher will ever be found for a task: something else is in the place of its directory, or the
 * directory belongs to another user. What still runs of the task is found by its mark.
 */
const OUT_OF_REACH: readonly string[] = ['ENOTDIR', 'ELOOP', 'EACCES', 'EPERM']

export class LauncherRecords {
  /** Absolute. */
  readonly dataDir: string

  constructor(dataDir: string) {
    this.dataDir = dataDir
  }

  dirOf(task: LiveTask): TaskDir {
    return taskDir(this.dataDir, task.task_id)
  }

  /** Throws when the files cannot be read. */
  read(task: LiveTask): TaskRecord {
    return readRecord(this.dirOf(task).task_dir)
  }

  /** Removes what a launcher wrote about a task that the machine refused to start. The launcher must be gone. */
  remove(task: LiveTask): void {
    removeRecord(this.dirOf(task).task_dir)
  }

  /** Whether the launcher of a task is at work; undefined where that cannot be checked now. Never throws. */
  isLauncherAlive(task: LiveTask): boolean | undefined {
    try {
      return isLauncherAlive(this.dirOf(task).task_dir)
    } catch (error) {
      return OUT_OF_REACH.includes(systemCodeOf(error) ?? '') ? false : undefined
    }
  }

  /** Whether the launcher of a task came as far as making a process, or wrote an outcome without one. */
  hasBegun(task: LiveTask): boolean {
    // Once it was started, it has begun, whatever has become of the record.
    return task.row.started_at !== null || hasBegun(this.dirOf(task).task_dir)
  }

  /** Whether the outcome of a task is there and its launcher has let go. A task can write an outcome of its own. */
  isThrough(task: LiveTask): boolean {
    try {
      // The lock is not touched without an outcome: a launcher that is about to begin needs it.
      const hasOutcome = () => this.read(task).outcome !== undefined
      return hasOutcome() && this.isLauncherAlive(task) === false && hasOutcome()
    } catch {
      return false
    }
  }

  /** The process of a task that has no outcome yet. Undefined while that process is still a copy of the launcher. */
  startedProcess(task: LiveTask): StartedProcess | undefined {
    try {
      const { process, outcome } = this.read(task)
      if (process === undefined || outcome !== undefined || isBeforeExec(process)) return undefined
      return startedProcess(process)
    } catch {
      return undefined
    }
  }

  /** Asks the launcher to end its task. False when there is none (yet). Throws when the record of it cannot be read. */
  sendKill(task: LiveTask): boolean {
    const { launcher_pid, pid } = task.row
    const known = launcher_pid === null || pid === null ? undefined : { launcher_pid, pid }
    return requestKill(this.dirOf(task).task_dir, known)
  }
}

/**
 * A slow file system may take a while to hand out the program of a task. Of a process that has ended nobody knows whether it
 * came so far, until the outcome says so.
 */
function isBeforeExec({ launcher_pid, pid }: LaunchedProcess): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) === readlinkSync(`/proc/${launcher_pid}/exe`)
  } catch {
    return hasEnded(pid) // otherwise it is not ours to look at
  }
}

function hasEnded(pid: number): boolean {
  const stat = processStat(pid)
  return !isThere(pid) || (stat !== undefined && isZombie(stat))
}
