/**
 * Removes ended tasks from the runtime service that were deleted, replaced or retired here.
 *
 * Callers never wait for a removal. A removal that is given up is left to the runtime service's retention. Removals that
 * are not done yet are on disk (`removal-file.ts`) and go on after a restart.
 */
import { join } from 'node:path'
import { messageOf } from '../../../shared/errors.ts'
import type { CallFailed } from '../../../shared/http-client.ts'
import type { Log } from '../../../shared/log.ts'
import { newTraceId } from '../../../shared/trace.ts'
import { type Removal, RemovalFile } from './removal-file.ts'
import { type Outcome, RetryQueue } from './retry-queue.ts'
import { isAway, type RuntimeService } from './service.ts'

/** Removals that are remembered. Beyond that the oldest are given up. */
export const MAX_REMOVALS = 200_000

/** Milliseconds after which a removal is given up: as long as the runtime service keeps ended tasks by default. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000

/** Calls at the same time. More would take turns from tasks that are submitted. */
const PARALLEL_CALLS = 4

/** Milliseconds of the longest pause between two rounds. */
const MAX_PAUSE_MS = 30_000

const FILE = 'runtime-drops.jsonl'

export interface RemoteRemovalsOptions {
  readonly dataDir: string
  readonly service: Pick<RuntimeService, 'remove'>
  readonly log: Log
  /** Default: `MAX_REMOVALS`. */
  readonly maxRemovals?: number
}

export class RemoteRemovals {
  readonly #options: RemoteRemovalsOptions
  readonly #file: RemovalFile
  readonly #queue: RetryQueue<Removal>
  /** Statuses of refusals that are in the log. */
  readonly #warned = new Set<number>()

  constructor(options: RemoteRemovalsOptions) {
    const { dataDir, log, maxRemovals = MAX_REMOVALS } = options
    this.#options = options
    const onError = (error: unknown) =>
      log.error('cannot note which tasks the runtime service is to remove', { cause: messageOf(error) })
    this.#file = new RemovalFile(join(dataDir, FILE), onError)
    this.#queue = new RetryQueue(this.#file.read(), {
      idOf: ({ id }) => id,
      attempt: (removal) => this.#attempt(removal),
      afterRound: () => this.#file.compact(this.#queue.items),
      onGivenUp: ({ length: count }, cause) =>
        log.warn('tasks are left to the retention of the runtime service', { count, cause }),
      ...{ log, maxItems: maxRemovals, giveUpAfterMs: GIVE_UP_AFTER_MS },
      ...{ parallel: PARALLEL_CALLS, maxPauseMs: MAX_PAUSE_MS },
    })
  }

  /** Removals that are not done yet. */
  get size(): number {
    return this.#queue.items.size
  }

  /** Goes on with those of an earlier run. */
  start(): void {
    this.#queue.start()
  }

  /** Has the tasks `ids`, whose owner is `owner`, removed. They are in the file when the caller's code
   * has ended, unless there are many. */
  add(ids: readonly string[], owner: string | undefined): void {
    const since = Date.now()
    for (const id of ids) {
      const removal = { id, owner, since }
      this.#queue.add(removal)
      this.#file.append(removal)
    }
  }

  async #attempt({ id, owner }: Removal): Promise<Outcome> {
    try {
      await this.#options.service.remove(id, owner, newTraceId())
      return 'done'
    } catch (error) {
      return isAway(error) ? 'away' : this.#refused(id, error as CallFailed)
    }
  }

  #refused(handle_id: string, { statusCode, message }: CallFailed): Outcome {
    if (statusCode === 404) return 'done'
    // It has not ended there yet, or the service has too much to do.
    if (statusCode === 409 || statusCode === 429 || statusCode >= 500) return 'later'
    // One line stands for all of the same kind: there may be many, as with a service that has no such route.
    if (!this.#warned.has(statusCode)) {
      this.#options.log.warn('the runtime service does not remove tasks', { handle_id, cause: message })
    }
    this.#warned.add(statusCode)
    return 'abandoned'
  }
}
