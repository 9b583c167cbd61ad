/**
 * Reads and follows logs of tasks at the runtime service.
 *
 * Existing output is read in pages, a few at the same time. A page is in memory before it is handed on, so a slow
 * reader holds no connection. New output arrives on one connection, which all followers of the log share
 * (`live-log.ts`).
 */
import { messageOf } from '../../../shared/contract/errors.ts'
import { CallFailed } from '../../../shared/http/client.ts'
import { GrowingPause } from '../../../shared/http/growing-pause.ts'
import { grown } from '../../../shared/streams/growth-waiters.ts'
import type { LogRequest } from '../executor.ts'
import { LiveLog } from './live-log.ts'
import { isAway, type LogRange, type RuntimeService } from './service.ts'

/** Bytes of a page. */
export const PAGE_BYTES = 256 * 1024

/** Maximum concurrent reads of pages. */
const PARALLEL_PAGES = 16

/** Milliseconds for the read of a page. */
const PAGE_TIMEOUT_MS = 15_000

/** Maximum logs with a connection of their own. Followers of further logs poll for new pages. */
const MAX_LIVE_LOGS = 64

/** Milliseconds between two polls, and before a lost connection is opened again. */
const PAUSES = { firstMs: 100, longestMs: 2_000 }

export interface RemoteLogRequest extends Pick<LogRequest, 'stream' | 'start' | 'onStart'> {
  readonly traceId: string
  /** Ends the reading. */
  readonly signal: AbortSignal
  /**
   * Undefined: reads only existing output. Otherwise follows the log until this returns true, also through outages of
   * the runtime service.
   */
  readonly untilOver?: () => boolean
}

export class RemoteLogs {
  readonly #service: Pick<RuntimeService, 'openLog'>
  readonly #silentMs: number | undefined
  readonly #live = new Map<string, LiveLog>()
  /** Number of present reads, and the reads that wait for their turn. */
  #reading = 0
  readonly #queue: (() => void)[] = []

  constructor(service: Pick<RuntimeService, 'openLog'>, silentMs?: number) {
    this.#service = service
    this.#silentMs = silentMs
  }

  /** Yields the bytes of a log. Throws `CallFailed`. */
  async *read(id: string, request: RemoteLogRequest): AsyncGenerator<Uint8Array, void, void> {
    const { stream, traceId, signal, untilOver } = request
    let range: LogRange = { stream, ...request.start, limit: PAGE_BYTES }
    let position: number | undefined
    let isLastLook = untilOver === undefined
    const pauses = new GrowingPause(PAUSES)
    while (!signal.aborted) {
      isLastLook ||= untilOver?.() === true
      try {
        const page = await this.#page(id, range, traceId, signal)
        if (position === undefined) request.onStart(page.offset)
        position = page.offset + page.bytes.length
        range = { stream, offset: position, limit: PAGE_BYTES }
        if (page.bytes.length > 0) {
          pauses.reset()
          yield page.bytes
        }
        if (page.bytes.length === PAGE_BYTES) continue
      } catch (error) {
        if (signal.aborted) return
        if (isLastLook || !isAway(error)) throw error
        await pause(pauses.next(), signal)
        continue
      }
      if (isLastLook) {
        if (untilOver?.() !== false) return
        isLastLook = false // a proxy may have ended the connection
        await pause(pauses.next(), signal)
        continue
      }
      const live = this.#enter(id, stream, position, traceId)
      if (live === undefined) {
        await pause(pauses.next(), signal)
        continue
      }
      try {
        for (;;) {
          const { state } = live
          const bytes = live.read(position)
          if (bytes === undefined || signal.aborted) break
          if (bytes.length > 0) {
            position += bytes.length
            yield bytes
          } else if (state === 'growing') await grown(live, signal)
          else {
            isLastLook = state === 'complete'
            if (state === 'lost') await pause(pauses.next(), signal)
            break
          }
        }
      } finally {
        live.leave()
      }
      range = { stream, offset: position, limit: PAGE_BYTES }
    }
  }

  /** The shared connection of the followers of a log. Undefined if other logs use all connections. */
  #enter(id: string, stream: LogRange['stream'], position: number, traceId: string): LiveLog | undefined {
    const key = `${id} ${stream}`
    let live = this.#live.get(key)
    if (live === undefined) {
      if (this.#live.size >= MAX_LIVE_LOGS) return undefined
      const range = { stream, offset: position, follow: true } as const
      live = new LiveLog(
        position,
        async (signal) => (await this.#service.openLog(id, range, traceId, signal)).stream,
        (over) => this.#live.get(key) === over && this.#live.delete(key),
        this.#silentMs,
      )
      this.#live.set(key, live)
    }
    live.enter()
    return live
  }

  async #page(id: string, range: LogRange, traceId: string, signal: AbortSignal) {
    if (this.#reading >= PARALLEL_PAGES) await new Promise<void>((resolve) => this.#queue.push(resolve))
    this.#reading++
    try {
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(PAGE_TIMEOUT_MS)])
      const { offset, stream } = await this.#service.openLog(id, range, traceId, inTime)
      return { offset, bytes: await new Response(stream).bytes() }
    } catch (error) {
      if (error instanceof CallFailed) throw error
      throw new CallFailed(`the runtime service broke off the log of ${id}: ${messageOf(error)}`)
    } finally {
      this.#reading--
      this.#queue.shift()?.()
    }
  }
}

/** Sleeps until the time is up or `signal` fires. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve()
    }
    const timer = setTimeout(stop, ms)
    signal.addEventListener('abort', stop, { once: true })
  })
}
