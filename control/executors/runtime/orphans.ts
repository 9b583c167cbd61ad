/**
 * Orphans: abandoned attempts in the runtime service, to be killed as soon as the service is reachable.
 *
 * An orphan is in `orphans.json` before `add` returns. So a cancelled task does not keep running after a crash of
 * control, or while the runtime service is unreachable for days.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFileNow } from '../../../shared/atomic-file.ts'
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
}

/** Maximum number of orphans. Beyond it, the oldest are forgotten. */
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
  readonly #service: RuntimeService
  readonly #log: Log
  readonly #queue: RetryQueue<Orphan>
  /** Whether the file lacks the last change. */
  #isUnwritten = false

  /** Reads the orphans of an earlier run. Throws `UsageError` if the file is unreadable. */
  constructor({ dataDir, service, log }: { dataDir: string; service: RuntimeService; log: Log }) {
    this.#path = join(dataDir, FILE)
    this.#service = service
    this.#log = log
    this.#queue = new RetryQueue(readOrphans(this.#path), {
      idOf: ({ handle_id }) => handle_id,
      attempt: (orphan) => this.#end(orphan),
      afterRound: (hasChanged) => this.#write(hasChanged),
      onGivenUp: (orphans, cause) => {
        for (const { handle_id } of orphans) {
          log.error('a task in the runtime service is given up, it may still run', { handle_id, cause })
        }
      },
      ...{ log, maxItems: MAX_ORPHANS, giveUpAfterMs: GIVE_UP_AFTER_MS, parallel: 1, maxPauseMs: MAX_PAUSE_MS },
    })
  }

  /** Continues with the orphans of an earlier run. */
  start(): void {
    this.#queue.start()
  }

  /** The orphan is on disk when `add` returns. */
  add(orphan: Orphan): void {
    this.#queue.add(orphan)
    this.#write(true)
  }

  async #end({ handle_id, owner, is_taken, since }: Orphan): Promise<Outcome> {
    try {
      await this.#service.kill(handle_id, owner, newTraceId())
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

  /** Writes and syncs all orphans, because callers promise the end of an attempt. A refused write is repeated later. */
  #write(hasChanged: boolean): void {
    this.#isUnwritten ||= hasChanged
    if (!this.#isUnwritten) return
    try {
      replaceFileNow(this.#path, JSON.stringify({ orphans: [...this.#queue.items.values()] }))
      this.#isUnwritten = false
    } catch (error) {
      this.#log.error('cannot note which tasks are to be ended in the runtime service', { cause: messageOf(error) })
    }
  }
}

function readOrphans(path: string): Orphan[] {
  if (!existsSync(path)) return []
  try {
    const { orphans } = JSON.parse(readFileSync(path, 'utf8')) as { orphans: Orphan[] }
    if (!orphans.every(({ handle_id, since }) => typeof handle_id === 'string' && Number.isFinite(since))) {
      throw new Error('it does not hold what it should')
    }
    return orphans
  } catch (error) {
    throw new UsageError(
      `cannot read ${path}: ${messageOf(error)}; it names tasks that are to be ended in the runtime service (repair it, or remove it if none of them runs any more)`,
    )
  }
}
