/**
 * Orphans: abandoned attempts in runtime services, to be killed as soon as their service is reachable.
 *
 * Each orphan is kept before anybody is told of the end of its task. So a cancelled task does not keep running after a crash
 * of control, or while its runtime service is unreachable for days. Each runtime service has a queue, so that one that is
 * away delays no other. The orphans of a removed runtime service wait for its return.
 */
import { DEFAULT_RUNTIME } from '../../../shared/contract/runtime-names.ts'
import type { CallFailed } from '../../../shared/http/client.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { newTraceId } from '../../../shared/logs/trace.ts'
import type { Orphan, OrphanKeeper } from '../../log/kept-orphans.ts'
import type { Handle } from '../../task/rare-state.ts'
import type { RuntimePool } from './pool.ts'
import { RetryQueue, type TryOutcome } from './retry-queue.ts'
import { isAway, SUBMISSION_LEASE_MS } from './service.ts'

/** Maximum number of orphans of a runtime service. Beyond it, the oldest are forgotten. */
const MAX_ORPHANS = 10_000

/** Milliseconds after which an orphan is given up: its own limits have ended it, or the service is gone. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000

/** Milliseconds of the longest pause between two rounds. */
const MAX_PAUSE_MS = 5_000

/** Milliseconds after which an unanswered submission is no longer accepted, where a kill cannot bar it. */
const ARRIVED_AFTER_MS = SUBMISSION_LEASE_MS + 1_000

export class Orphans {
  readonly #pool: RuntimePool
  readonly #log: Log
  #keeper: OrphanKeeper | undefined
  /** By name of the runtime service. */
  readonly #queues = new Map<string, RetryQueue<Orphan>>()
  /** Orphans that left their queues in this round. */
  #left: Orphan[] = []
  /** Refusals that were logged, by id. */
  readonly #refusals = new Map<string, string>()

  constructor(pool: RuntimePool, log: Log) {
    this.#pool = pool
    this.#log = log
  }

  /** To be called once, before there are orphans. */
  keepIn(keeper: OrphanKeeper): void {
    this.#keeper = keeper
    for (const [runtime, orphans] of Map.groupBy(keeper.found, runtimeOf)) {
      this.#queues.set(runtime, this.#newQueue(orphans))
    }
    keeper.onFound = (orphans) => {
      for (const orphan of orphans) {
        const queue = this.#queueOf(orphan)
        if (!queue.items.has(orphan.handle_id)) queue.add(orphan)
      }
    }
  }

  #newQueue(orphans: readonly Orphan[]): RetryQueue<Orphan> {
    const log = this.#log
    return new RetryQueue(orphans, {
      idOf: ({ handle_id }) => handle_id,
      attempt: (orphan) => this.#end(orphan),
      afterRound: () => this.#keeper!.remove(this.#left.splice(0)),
      onGivenUp: (givenUp, cause) => {
        this.#left.push(...givenUp)
        for (const { handle_id } of givenUp) {
          this.#refusals.delete(handle_id)
          log.error('a task in the runtime service is given up, it may still run', { handle_id, cause })
        }
      },
      ...{ log, maxItems: MAX_ORPHANS, giveUpAfterMs: GIVE_UP_AFTER_MS, parallel: 1, maxPauseMs: MAX_PAUSE_MS },
    })
  }

  /** Continues with the orphans of an earlier run. */
  start(): void {
    for (const queue of this.#queues.values()) queue.start()
  }

  /** Number of orphans of a runtime service. */
  count(runtime: string): number {
    return this.#queues.get(runtime)?.items.size ?? 0
  }

  /** Has an attempt killed at its runtime service, now or as soon as that can be reached. */
  abandon({ id: handle_id, owner, isTaken: is_taken, runtime }: Handle): void {
    this.add({
      ...{ handle_id, is_taken, since: Date.now() },
      ...(owner !== undefined && { owner }),
      ...(runtime !== undefined && { runtime }),
    })
  }

  add(orphan: Orphan): void {
    this.#queueOf(orphan).add(orphan)
    this.#keeper!.add(orphan)
  }

  #queueOf(orphan: Orphan): RetryQueue<Orphan> {
    const runtime = runtimeOf(orphan)
    let queue = this.#queues.get(runtime)
    if (queue === undefined) {
      queue = this.#newQueue([])
      this.#queues.set(runtime, queue)
    }
    return queue
  }

  async #end(orphan: Orphan): Promise<TryOutcome> {
    const outcome = await this.#kill(orphan)
    if (outcome === 'done') this.#left.push(orphan)
    return outcome
  }

  async #kill(orphan: Orphan): Promise<TryOutcome> {
    const { handle_id, owner, is_taken, since } = orphan
    const service = this.#pool.get(runtimeOf(orphan))?.service
    if (service === undefined) return 'away'
    try {
      const wasThere = await service.kill(handle_id, owner, newTraceId())
      if (wasThere) this.#log.info('ended an abandoned attempt in the runtime service', { handle_id })
      this.#refusals.delete(handle_id)
      return 'done'
    } catch (error) {
      if (isAway(error)) return 'away'
      const { statusCode, message } = error as CallFailed
      if (statusCode !== 404) {
        this.#refused(handle_id, message)
        return 'later'
      }
      if (!is_taken && Date.now() - since < ARRIVED_AFTER_MS) return 'later'
      this.#refusals.delete(handle_id)
      return 'done'
    }
  }

  /** Logs a refusal once, because it may come every few seconds for days. */
  #refused(handle_id: string, cause: string): void {
    if (this.#refusals.get(handle_id) === cause) return
    this.#refusals.set(handle_id, cause)
    this.#log.error('the runtime service refuses to end an abandoned attempt', { handle_id, cause })
  }
}

const runtimeOf = ({ runtime = DEFAULT_RUNTIME }: Orphan): string => runtime
