/**
 * Removes ended tasks from runtime services after they were deleted, replaced or retired in control.
 *
 * Callers never wait for a removal. If a removal is given up, the retention of its runtime service removes the task. A
 * removal is noted and sent once the end of its task is kept (`message-order.ts`). Unfinished removals are on disk
 * (`removal-file.ts`) and continue after a restart. Each runtime service has a queue, so
 * that one that is away delays no other.
 */
import { join } from 'node:path'
import { messageOf } from '../../../shared/contract/errors.ts'
import { DEFAULT_RUNTIME } from '../../../shared/contract/runtime-names.ts'
import type { CallFailed } from '../../../shared/http/client.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { newTraceId } from '../../../shared/logs/trace.ts'
import type { Keeper } from '../../log/keeper.ts'
import { MESSAGE_ORDER } from './message-order.ts'
import type { RuntimePool } from './pool.ts'
import { type OpenRemovals, type Removal, RemovalFile } from './removal-file.ts'
import { RetryQueue, sleep, type TryOutcome } from './retry-queue.ts'
import { isAway } from './service.ts'

/** Maximum unfinished removals of a runtime service. The oldest are given up first. */
export const MAX_REMOVALS = 200_000

/** Milliseconds until a removal is given up. This is the default retention of the runtime service. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000

/** Maximum concurrent calls. More would slow down submissions. */
const PARALLEL_CALLS = 4

/** Maximum milliseconds between two rounds. */
const MAX_PAUSE_MS = 30_000

/** Milliseconds between two questions whether the end of a task is kept. */
const KEPT_PAUSE_MS = 1_000

const FILE = 'runtime-drops.jsonl'

export interface RemoteRemovalsOptions {
  readonly dataDir: string
  readonly pool: RuntimePool
  readonly keeper: Pick<Keeper, 'kept'>
  readonly log: Log
  /** Default: `MAX_REMOVALS`. */
  readonly maxRemovals?: number
}

export class RemoteRemovals {
  readonly #options: RemoteRemovalsOptions
  readonly #file: RemovalFile
  /** By name of the runtime service. */
  readonly #queues = new Map<string, RetryQueue<Removal>>()
  /** Removals that were added in this turn of the event loop. */
  #added: Removal[] = []
  /** How many wait for their commit. */
  #waiting = 0
  /** Statuses of refusals that were logged. */
  readonly #warned = new Set<number>()

  constructor(options: RemoteRemovalsOptions) {
    const { dataDir, log } = options
    this.#options = options
    const onError = (error: unknown) =>
      log.error('cannot note which tasks the runtime service is to remove', { cause: messageOf(error) })
    this.#file = new RemovalFile(join(dataDir, FILE), onError)
    for (const [runtime, removals] of Map.groupBy(this.#file.read(), runtimeOf)) {
      this.#queues.set(runtime, this.#newQueue(removals))
    }
  }

  #newQueue(removals: readonly Removal[]): RetryQueue<Removal> {
    const { log, maxRemovals = MAX_REMOVALS } = this.#options
    return new RetryQueue(removals, {
      idOf: ({ id }) => id,
      attempt: (removal) => this.#attempt(removal),
      afterRound: () => this.#file.compact(this.#open()),
      onGivenUp: ({ length: count }, cause) =>
        log.warn('tasks are left to the retention of the runtime service', { count, cause }),
      ...{ log, maxItems: maxRemovals, giveUpAfterMs: GIVE_UP_AFTER_MS },
      ...{ parallel: PARALLEL_CALLS, maxPauseMs: MAX_PAUSE_MS },
    })
  }

  /** Number of unfinished removals. */
  get size(): number {
    return this.#open().size + this.#waiting
  }

  #open(): OpenRemovals {
    const queues = [...this.#queues.values()]
    return {
      size: queues.reduce((size, { items }) => size + items.size, 0),
      values: () => removalsIn(queues),
    }
  }

  /** Continues the removals of an earlier run. */
  start(): void {
    for (const queue of this.#queues.values()) queue.start()
  }

  /**
   * Schedules the removal of `tasks` of `owner`, which are gone by a change that the caller makes in this turn of the event
   * loop. A few are in the file before the answer leaves that promises the change.
   */
  add(tasks: readonly Pick<Removal, 'id' | 'runtime'>[], owner: string | undefined): void {
    const since = Date.now()
    if (this.#added.length === 0 && tasks.length > 0) queueMicrotask(() => void this.#noteKept())
    this.#waiting += tasks.length
    for (const { id, runtime } of tasks) {
      this.#added.push({ id, owner, since, ...(runtime !== undefined && { runtime }) })
    }
  }

  async #noteKept(): Promise<void> {
    const removals = this.#added
    this.#added = []
    while (!(await this.#areKept())) await sleep(KEPT_PAUSE_MS)
    this.#waiting -= removals.length
    for (const removal of removals) {
      const name = runtimeOf(removal)
      let queue = this.#queues.get(name)
      if (queue === undefined) {
        queue = this.#newQueue([])
        this.#queues.set(name, queue)
      }
      queue.add(removal)
      this.#file.append(removal)
    }
  }

  /** False while the keeper cannot tell. */
  async #areKept(): Promise<boolean> {
    try {
      await this.#options.keeper.kept(MESSAGE_ORDER.remove.after)
      return true
    } catch {
      return false
    }
  }

  async #attempt(removal: Removal): Promise<TryOutcome> {
    const { id, owner } = removal
    const service = this.#options.pool.get(runtimeOf(removal))?.service
    if (service === undefined) return 'abandoned' // its runtime service was removed
    try {
      await service.remove(id, owner, newTraceId())
      return 'done'
    } catch (error) {
      return isAway(error) ? 'away' : this.#refused(id, error as CallFailed)
    }
  }

  #refused(handle_id: string, { statusCode, message }: CallFailed): TryOutcome {
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

const runtimeOf = ({ runtime = DEFAULT_RUNTIME }: Pick<Removal, 'runtime'>): string => runtime

function* removalsIn(queues: readonly RetryQueue<Removal>[]): Generator<Removal, void, void> {
  for (const { items } of queues) yield* items.values()
}
