/**
 * Tries launches again that the machine refused for want of processes or memory.
 *
 * Meanwhile the task keeps its reservation: another task in its place would make the shortage worse. It has no
 * launcher, and on disk it looks as if it had never been launched (`launch_boot_id` is null), so a service that starts
 * meanwhile launches it. The record of the refused launch is removed, as no launcher starts a task that has an outcome.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { Ends } from './end.ts'
import { cancelledBeforeStart, type Ending } from './ending.ts'
import type { Flight } from './flight.ts'
import { gaveUp, launchDelayed, ranOutOfTime, refusalOf } from './launch-refusal.ts'
import type { LauncherRecords } from './launcher-records.ts'
import type { Starts } from './start.ts'

/** Milliseconds between two launches of a task. */
const RETRY_PAUSES = { firstMs: 100, longestMs: 2_000 }

export interface LaunchRetriesOptions {
  readonly starts: Starts
  readonly records: Pick<LauncherRecords, 'remove'>
  readonly ends: Pick<Ends, 'removeSecrets'>
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
   * Launches a task whose reservation is durable, as often as it takes. Returns how the task ended; undefined where
   * this service stops first, and then the next one launches it.
   */
  async run(flight: Flight, request?: TaskRequest): Promise<Ending | undefined> {
    const sinceMs = performance.now()
    return await this.afterFirst(flight, await this.#runUnlessKilled(flight, request), sinceMs)
  }

  /** Launches a task whose launcher, of an earlier service, is gone without having begun. */
  async runAgain(flight: Flight): Promise<Ending | undefined> {
    const sinceMs = performance.now()
    return await this.afterFirst(flight, await this.#launchAgain(flight), sinceMs)
  }

  /** The same once the first launch, of `sinceMs`, has ended so. */
  async afterFirst(flight: Flight, first: Ending, sinceMs: number): Promise<Ending | undefined> {
    if (refusalOf(first) === undefined) return first
    const { retryMs, isStopping } = this.#options
    const { limits } = flight.task
    const endOfWallTime = sinceMs + limits.wall_time_ms
    const refusedMs = performance.now()
    const until = Math.min(refusedMs + retryMs, endOfWallTime)
    let ending = first
    const pauses = new GrowingPause(RETRY_PAUSES)
    for (let tries = 1; ; tries++) {
      const refusal = refusalOf(ending)
      if (refusal === undefined) return ending
      if (isKilled(flight)) return cancelledBeforeStart(Date.now())
      const now = performance.now()
      if (now >= endOfWallTime) return ranOutOfTime(refusal, limits)
      if (now >= until) return tries === 1 ? ending : gaveUp(refusal, tries, now - refusedMs)
      const fault = this.#putBack(flight, ending, tries === 1)
      if (fault !== undefined) return fault
      await pause(flight, Math.min(pauses.next(), until - now))
      if (isStopping()) return undefined
      if (!isKilled(flight) && performance.now() < endOfWallTime) ending = await this.#launchAgain(flight)
    }
  }

  /** The task waits from now on, also for the next service. Returns the refused ending where that is not possible. */
  #putBack({ task }: Flight, ending: Ending, isFirst: boolean): Ending | undefined {
    const { records, ends, store, retryMs, log } = this.#options
    const { task_id } = task
    const refusal = refusalOf(ending)!
    try {
      records.remove(task)
    } catch (error) {
      log.error('cannot remove the record of a launch that was refused', { task_id, cause: messageOf(error) })
      return ending
    }
    ends.removeSecrets(task) // each launch reads them again
    if (isFirst) log.warn('the machine refuses a launch: it is tried again', { task_id, cause: refusal.message })
    store.note(task, { patch: { launch_boot_id: null }, events: isFirst ? [launchDelayed(refusal, retryMs)] : [] })
    return undefined
  }

  /** Makes the intent to launch durable before the launch. */
  async #launchAgain(flight: Flight): Promise<Ending> {
    const { store, bootId } = this.#options
    await store.change(flight.task, { patch: { launch_boot_id: bootId }, events: [] })
    return await this.#runUnlessKilled(flight)
  }

  async #runUnlessKilled(flight: Flight, request?: TaskRequest): Promise<Ending> {
    return isKilled(flight) ? cancelledBeforeStart(Date.now()) : await this.#options.starts.run(flight, request)
  }
}

const isKilled = ({ task }: Flight): boolean => task.row.kill_requested_at !== null

/** A kill ends the pause too: there is no launcher to be asked. */
async function pause(flight: Flight, ms: number): Promise<void> {
  const isOver = flight.delayed()
  const { phase } = flight
  const timer = setTimeout(() => phase.name === 'delayed' && phase.wake(), ms)
  await isOver
  clearTimeout(timer)
}
