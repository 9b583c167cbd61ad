/**
 * Launches tasks, and tries again what the machine refuses for want of processes or memory.
 *
 * A task that waits for that keeps its place and its reservation: to give the place to another one would make the shortage
 * worse. It has no launcher then, and on record it waits as if it had never been launched (`launch_boot_id` is null), so a
 * service that starts meanwhile launches it. Its record of the refused launch is removed: no launcher starts a task that
 * has an outcome.
 */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { Limits } from '../../shared/runtime-request/limits.ts'
import type { TaskStore } from '../store/task-store.ts'
import { cancelledBeforeStart, type Ending } from './ending.ts'
import type { Launches, PreparedLaunch } from './launches.ts'
import type { RunningTask } from './running-task.ts'
import { gaveUp, launchDelayed, ranOutOfTime, shortageOf } from './shortage.ts'

/** Milliseconds between two launches of a task: at first, then twice as many each time, and at most. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 2_000

export interface LaunchRetriesOptions {
  readonly launches: Launches
  readonly store: TaskStore
  readonly bootId: string
  /** Milliseconds for which a launch is tried again. */
  readonly retryMs: number
  readonly isStopping: () => boolean
  readonly log: Log
}

export class LaunchRetries {
  readonly #options: LaunchRetriesOptions

  constructor(options: LaunchRetriesOptions) {
    this.#options = options
  }

  /**
   * The ending of a task whose place is written down. `launch` is its first launch. Undefined where this service starts it
   * no more: the next one does.
   */
  async run(running: RunningTask, launch: () => Promise<Ending>): Promise<Ending | undefined> {
    const { task } = running
    const launchedSince = performance.now()
    if (isKilled(running)) return cancelledBeforeStart(Date.now())
    const ending = await launch()
    if (shortageOf(ending) === undefined) return ending
    const limits = JSON.parse(task.row.limits) as Limits
    return await this.#again(running, ending, { limits, endOfWallTime: launchedSince + limits.wall_time_ms })
  }

  async #again(
    running: RunningTask,
    refused: Ending,
    { limits, endOfWallTime }: { limits: Limits; endOfWallTime: number },
  ): Promise<Ending | undefined> {
    const { retryMs, isStopping } = this.#options
    const refusedSince = performance.now()
    const until = Math.min(refusedSince + retryMs, endOfWallTime)
    let ending = refused
    let pauseMs = FIRST_PAUSE_MS
    for (let tries = 1; ; tries++) {
      const shortage = shortageOf(ending)
      if (shortage === undefined) return ending
      if (isKilled(running)) return cancelledBeforeStart(Date.now())
      const now = performance.now()
      if (now >= endOfWallTime) return ranOutOfTime(shortage, limits)
      if (now >= until) return tries === 1 ? ending : gaveUp(shortage, tries, now - refusedSince)
      const fault = this.#wait(running, ending, tries === 1)
      if (fault !== undefined) return fault
      await pause(running, Math.min(pauseMs, until - now))
      pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
      if (isStopping()) return undefined
      if (!isKilled(running) && performance.now() < endOfWallTime) ending = await this.#launchAgain(running)
    }
  }

  /** The task waits from now on, also for the next service. */
  #wait({ task }: RunningTask, ending: Ending, isFirst: boolean): Ending | undefined {
    const { launches, store, retryMs, log } = this.#options
    const shortage = shortageOf(ending)!
    try {
      launches.forgetRefusal(task)
    } catch (error) {
      log.error('cannot remove the record of a launch that was refused', {
        task_id: task.task_id,
        cause: messageOf(error),
      })
      return ending
    }
    if (isFirst) {
      log.warn('the machine refuses a launch: it is tried again', { task_id: task.task_id, cause: shortage.message })
    }
    store.note(task, { patch: { launch_boot_id: null }, events: isFirst ? [launchDelayed(shortage, retryMs)] : [] })
    return undefined
  }

  /** That it is launched is durable before it is. */
  async #launchAgain(running: RunningTask): Promise<Ending> {
    const { launches, store, bootId } = this.#options
    const { task } = running
    let prepared: PreparedLaunch | undefined
    await store.change(task, { patch: { launch_boot_id: bootId }, events: [] }, () => {
      prepared = launches.prepare(task)
    })
    if (isKilled(running)) return cancelledBeforeStart(Date.now())
    return await launches.run(running, prepared!)
  }
}

const isKilled = ({ task }: RunningTask): boolean => task.row.kill_requested_at !== null

/** Nobody has to be asked to end the task meanwhile: `endDelay` does. */
async function pause(running: RunningTask, ms: number): Promise<void> {
  const ended = running.delay()
  const timer = setTimeout(running.endDelay, ms)
  await ended
  clearTimeout(timer)
}
