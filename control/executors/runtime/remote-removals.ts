/**
 * Removes ended tasks from the runtime service after they were deleted, replaced or retired in control.
 *
 * Callers never wait for a removal. If a removal is given up, the retention of the runtime service removes the task.
 * Unfinished removals are on disk (`removal-file.ts`) and continue after a restart.
 */
import { join } from 'node:path'
import { messageOf } from '../../../shared/errors.ts'
import type { CallFailed } from '../../../shared/http-client.ts'
import type { Log } from '../../../shared/log.ts'
import { newTraceId } from '../../../shared/trace.ts'
import { type Removal, RemovalFile } from './removal-file.ts'
import { type Outcome, RetryQueue } from './retry-queue.ts'
import { isAway, type RuntimeService } from './service.ts'

/** Maximum unfinished removals. The oldest are given up first. */
export const MAX_REMOVALS = 200_000

/** Milliseconds until a removal is given up. This is the default retention of the runtime service. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000

/** Maximum concurrent calls. More would slow down submissions. */
const PARALLEL_CALLS = 4

/** Maximum milliseconds between two rounds. */
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
  /** Statuses of refusals that were logged. */
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

  /** Number of unfinished removals. */
  get size(): number {
    return this.#queue.items.size
  }

  /** Continues the removals of an earlier run. */
  start(): void {
    this.#queue.start()
  }

  /**
   * Schedules the removal of the tasks `ids` of `owner`. A few ids are in the file before the caller's answer leaves.
   */
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
    // The task has not ended there yet, or the service is overloaded.
    if (statusCode === 409 || statusCode === 429 || statusCode >= 500) return 'later'
    // One line per status, because a service without this route refuses every removal.
    if (!this.#warned.has(statusCode)) {
      this.#options.log.warn('the runtime service does not remove tasks', { handle_id, cause: message })
    }
    this.#warned.add(statusCode)
    return 'abandoned'
  }
}
