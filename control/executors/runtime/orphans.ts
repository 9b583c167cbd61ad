/**
 * Attempts in the runtime service that nobody waits for any more: they are ended there as soon as it can be reached.
 *
 * They are on disk, in a file of their own, before whoever lets one go goes on. So neither a crash of this service nor
 * a runtime service that is away for days leaves something running that was cancelled.
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
  /** The runtime service is known to have it. One that may still be on its way there is looked for twice. */
  readonly is_taken: boolean
  /** Milliseconds since 1970. */
  readonly since: number
}

/** Orphans that are remembered. For more, the oldest are forgotten. */
const MAX_ORPHANS = 10_000

/** Milliseconds after which one is given up: by then it has long ended by its own limits, or the service is gone. */
const GIVE_UP_AFTER_MS = 7 * 24 * 3_600_000

/** Milliseconds of the longest pause between two rounds. */
const MAX_PAUSE_MS = 5_000

/** Milliseconds after which a request that was not answered has arrived, or never will. */
const ARRIVED_AFTER_MS = 2_000

const FILE = 'orphans.json'

export class Orphans {
  readonly #path: string
  readonly #service: RuntimeService
  readonly #log: Log
  readonly #queue: RetryQueue<Orphan>
  /** The file does not have the last change. */
  #isUnwritten = false

  /** Throws `UsageError` when the file of an earlier run cannot be read. */
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

  /** Goes on with those of an earlier run. */
  start(): void {
    this.#queue.start()
  }

  /** It is on disk when this returns. */
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

  /** All of them, synced before it returns, as a promise may depend on it. What a disk refuses is tried again. */
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
