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

/** Milliseconds between two rounds while some are left: at first, and at most. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000

/** Milliseconds after which a request that was not answered has arrived, or never will. */
const ARRIVED_AFTER_MS = 2_000

const FILE = 'orphans.json'

export class Orphans {
  readonly #path: string
  readonly #service: RuntimeService
  readonly #log: Log
  readonly #orphans = new Map<string, Orphan>()
  /** The file does not have the last change. */
  #isUnwritten = false
  #isWorking = false
  /** One has come since the last round began. */
  #hasNew = false
  /** Ends the pause between two rounds. */
  #wake: () => void = () => {}

  /** Throws `UsageError` when the file of an earlier run cannot be read. */
  constructor({ dataDir, service, log }: { dataDir: string; service: RuntimeService; log: Log }) {
    this.#path = join(dataDir, FILE)
    this.#service = service
    this.#log = log
    for (const orphan of readOrphans(this.#path)) this.#orphans.set(orphan.handle_id, orphan)
  }

  /** Goes on with those of an earlier run. */
  start(): void {
    if (this.#orphans.size > 0) void this.#work()
  }

  add(orphan: Orphan): void {
    this.#orphans.set(orphan.handle_id, orphan)
    this.#isUnwritten = true
    for (const [id] of this.#orphans) {
      if (this.#orphans.size <= MAX_ORPHANS) break
      this.#forget(id, 'there are too many of them')
    }
    this.#write()
    this.#hasNew = true
    this.#wake()
    void this.#work()
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    let pauseMs = FIRST_PAUSE_MS
    while (this.#orphans.size > 0) {
      // One that cannot be reached keeps others waiting for the next round. That comes soon while rounds achieve anything.
      if (await this.#endAll()) pauseMs = FIRST_PAUSE_MS
      this.#write()
      if (this.#orphans.size === 0) break
      if (!this.#hasNew) await this.#pause(pauseMs)
      pauseMs = this.#hasNew ? FIRST_PAUSE_MS : Math.min(2 * pauseMs, MAX_PAUSE_MS)
    }
    this.#isWorking = false
  }

  /** One round, until the service is away; whether any of them was ended. */
  async #endAll(): Promise<boolean> {
    let isAnyDone = false
    this.#hasNew = false
    for (const orphan of [...this.#orphans.values()]) {
      if (Date.now() - orphan.since > GIVE_UP_AFTER_MS) {
        this.#forget(orphan.handle_id, 'it could not be reached')
        continue
      }
      const outcome = await this.#end(orphan)
      if (outcome === 'away') break
      isAnyDone ||= outcome === 'done'
    }
    return isAnyDone
  }

  /** Or until another one comes, which is not to wait for the others. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    timer.unref()
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }

  async #end(orphan: Orphan): Promise<'done' | 'away' | 'refused'> {
    const { handle_id, owner, is_taken, since } = orphan
    try {
      await this.#service.kill(handle_id, owner, newTraceId())
      this.#log.info('ended in the runtime service what nobody waits for', { handle_id })
    } catch (error) {
      if (isAway(error)) return 'away'
      const { statusCode, message } = error as CallFailed
      if (statusCode !== 404) {
        this.#log.error('the runtime service does not end what nobody waits for', { handle_id, cause: message })
        return 'refused'
      }
      if (!is_taken && Date.now() - since < ARRIVED_AFTER_MS) return 'refused'
    }
    // Meanwhile it may have been let go again, as more is known about it.
    if (this.#orphans.get(handle_id) === orphan) this.#delete(handle_id)
    return 'done'
  }

  #forget(handle_id: string, cause: string): void {
    this.#log.error('a task in the runtime service is given up, it may still run', { handle_id, cause })
    this.#delete(handle_id)
  }

  #delete(handle_id: string): void {
    this.#orphans.delete(handle_id)
    this.#isUnwritten = true
  }

  /** Whatever has changed, synced before it returns, as a promise may depend on it. What a disk refuses is tried again. */
  #write(): void {
    if (!this.#isUnwritten) return
    try {
      replaceFileNow(this.#path, JSON.stringify({ orphans: [...this.#orphans.values()] }))
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
