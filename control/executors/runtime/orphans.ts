/**
 * Orphans: abandoned attempts in runtime services, to be killed as soon as their service is reachable.
 *
 * An orphan is in `orphans.json` before `add` returns. So a cancelled task does not keep running after a crash of
 * control, or while its runtime service is unreachable for days. The orphans of each runtime service have a queue of
 * their own, so that one that is away keeps up no other. Those of one that was removed wait for its return.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFileNow } from '../../../shared/atomic-file.ts'
import { DEFAULT_RUNTIME } from '../../../shared/contract/placement.ts'
import { messageOf, UsageError } from '../../../shared/errors.ts'
import type { CallFailed } from '../../../shared/http-client.ts'
import type { Log } from '../../../shared/log.ts'
import { newTraceId } from '../../../shared/trace.ts'
import { type Outcome, RetryQueue } from './retry-queue.ts'
import { isAway, type RuntimeService } from './service.ts'

export interface Orphan {
  readonly handle_id: string
  readonly owner?: string
  /**
   * Whether the runtime service has confirmed the attempt. If not, its request may still arrive, so it is looked for
   * twice.
   */
  readonly is_taken: boolean
  /** Milliseconds since 1970. */
  readonly since: number
  /** The name of its runtime service. Absent: `default`. */
  readonly runtime?: string
}

/** Finds a runtime service by its name; undefined if it is not in the pool. */
export type FindRuntime<K extends keyof RuntimeService> = (name: string) => Pick<RuntimeService, K> | undefined

/** Maximum number of orphans of a runtime service. Beyond it, the oldest are forgotten. */
const MAX_ORPHANS = 10_000

/** Milliseconds after which an orphan is given up: its own limits have ended it, or the service is gone. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000

/** Milliseconds of the longest pause between two rounds. */
const MAX_PAUSE_MS = 5_000

/** Milliseconds after which an unanswered request can no longer arrive. */
const ARRIVED_AFTER_MS = 2_000

const FILE = 'orphans.json'

export class Orphans {
  readonly #path: string
  readonly #find: FindRuntime<'kill'>
  readonly #log: Log
  /** By name of the runtime service. */
  readonly #queues = new Map<string, RetryQueue<Orphan>>()
  /** Whether the file lacks the last change. */
  #isUnwritten = false

  /** Reads the orphans of an earlier run. Throws `UsageError` if the file is unreadable. */
  constructor({ dataDir, find, log }: { dataDir: string; find: FindRuntime<'kill'>; log: Log }) {
    this.#path = join(dataDir, FILE)
    this.#find = find
    this.#log = log
    for (const [runtime, orphans] of Map.groupBy(readOrphans(this.#path), runtimeOf)) {
      this.#queues.set(runtime, this.#newQueue(orphans))
    }
  }

  #newQueue(orphans: readonly Orphan[]): RetryQueue<Orphan> {
    const log = this.#log
    return new RetryQueue(orphans, {
      idOf: ({ handle_id }) => handle_id,
      attempt: (orphan) => this.#end(orphan),
      afterRound: (hasChanged) => this.#write(hasChanged),
      onGivenUp: (givenUp, cause) => {
        for (const { handle_id } of givenUp) {
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

  /** The orphan is on disk when `add` returns. */
  add(orphan: Orphan): void {
    const runtime = runtimeOf(orphan)
    let queue = this.#queues.get(runtime)
    if (queue === undefined) {
      queue = this.#newQueue([])
      this.#queues.set(runtime, queue)
    }
    queue.add(orphan)
    this.#write(true)
  }

  async #end(orphan: Orphan): Promise<Outcome> {
    const { handle_id, owner, is_taken, since } = orphan
    const service = this.#find(runtimeOf(orphan))
    if (service === undefined) return 'away'
    try {
      await service.kill(handle_id, owner, newTraceId())
      this.#log.info('ended in the runtime service what nobody waits for', { handle_id })
      return 'done'
    } catch (error) {
      if (isAway(error)) return 'away'
      const { statusCode, message } = error as CallFailed
      if (statusCode !== 404) {
        this.#log.error('the runtime service does not end what nobody waits for', { handle_id, cause: message })
        return 'later'
      }
      return !is_taken && Date.now() - since < ARRIVED_AFTER_MS ? 'later' : 'done'
    }
  }

  #all(): Orphan[] {
    return [...this.#queues.values()].flatMap(({ items }) => [...items.values()])
  }

  /** Writes and syncs all orphans, because callers promise the end of an attempt. A refused write is repeated later. */
  #write(hasChanged: boolean): void {
    this.#isUnwritten ||= hasChanged
    if (!this.#isUnwritten) return
    try {
      replaceFileNow(this.#path, JSON.stringify({ orphans: this.#all() }))
      this.#isUnwritten = false
    } catch (error) {
      this.#log.error('cannot note which tasks are to be ended in the runtime service', { cause: messageOf(error) })
    }
  }
}

const isOrphan = ({ handle_id, since, runtime }: Orphan): boolean =>
  typeof handle_id === 'string' && Number.isFinite(since) && (runtime === undefined || typeof runtime === 'string')

const runtimeOf = ({ runtime = DEFAULT_RUNTIME }: Orphan): string => runtime

function readOrphans(path: string): Orphan[] {
  if (!existsSync(path)) return []
  try {
    const { orphans } = JSON.parse(readFileSync(path, 'utf8')) as { orphans: Orphan[] }
    if (!orphans.every(isOrphan)) {
      throw new Error('it does not hold what it should')
    }
    return orphans
  } catch (error) {
    throw new UsageError(
      `cannot read ${path}: ${messageOf(error)}; it names tasks that are to be ended in the runtime service (repair it, or remove it if none of them runs any more)`,
    )
  }
}
