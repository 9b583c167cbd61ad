/** Tells launchers to end their tasks, again and again: until there is one to tell, and until the task has ended. */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { Launches } from './launches.ts'
import type { RunningTask } from './running-task.ts'

/** Milliseconds until a kill that the launcher could not take yet is sent again. */
const KILL_AGAIN_MS = 10

/** The same for one that it was told: signals may get lost among others, and one more makes no difference. */
const KILL_TOLD_AGAIN_MS = 1_000

export class KillSender {
  readonly #launches: Launches
  readonly #log: Log

  constructor(launches: Launches, log: Log) {
    this.#launches = launches
    this.#log = log
  }

  /** From now on; once for each task. With `isOnce` only if it can be told now. Whether there was somebody to tell. */
  send(running: RunningTask, { isOnce = false } = {}): boolean {
    if (running.isEnding) return true
    const isTold = this.#isTold(running)
    if (isOnce && !isTold) return false
    running.killedSince ??= performance.now()
    setTimeout(() => this.send(running), isTold ? KILL_TOLD_AGAIN_MS : KILL_AGAIN_MS).unref()
    return isTold
  }

  /** False while there is nobody to tell: between the launch and the record of it, or when the record cannot be read. */
  #isTold(running: RunningTask): boolean {
    try {
      return this.#launches.sendKill(running.task)
    } catch (error) {
      if (!running.isKillHindered) {
        const { task_id } = running.task
        this.#log.warn('cannot ask a launcher to end its task yet', { task_id, cause: messageOf(error) })
      }
      running.isKillHindered = true
      return false
    }
  }
}
