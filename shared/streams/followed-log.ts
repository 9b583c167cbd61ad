/**
 * Follows one stream of the output of a task until the task has ended, over lost connections and restarts of the service.
 *
 * It is read one attempt at a time. Each answer says which attempt it is and at which byte it begins, so the client can ask
 * for the rest after a lost connection.
 */
import { isTerminal } from '../contract/task-status.ts'
import { type LogStreamRequest, logStream } from './log-stream.ts'
import { pause } from './pause.ts'
import type { StreamSource } from './source.ts'

/** Milliseconds before another request after an answer without a byte: the service may be about to stop. */
const EMPTY_ANSWER_PAUSE_MS = 100

/** A source that can also read the record of a task. */
export interface LogSource extends StreamSource {
  look(path: string, signal: AbortSignal): Promise<{ readonly status?: unknown; readonly attempt?: number }>
}

/** What a client does while the service is away. */
export interface Patience {
  /** The service has answered. */
  over(): void
  /** Waits before the next try. Throws if another try cannot help. */
  lost(error: unknown): Promise<void>
}

export interface FollowedLogRequest {
  /** The path of the task's routes. */
  readonly path: string
  readonly stream: string
  /** Lines to begin with. Undefined: all. */
  readonly tail?: number | undefined
  /** Where to begin instead. */
  readonly from?: { readonly attempt: number; readonly offset: number } | undefined
  readonly patience: Patience
  readonly onBegin?: LogStreamRequest['onBegin']
  readonly signal: AbortSignal
}

export interface LogPiece {
  /** The attempt that wrote it; 0 for output that belongs to none. */
  readonly attempt: number
  /** Position of its first byte in the output of that attempt. */
  readonly offset: number
  readonly bytes: Uint8Array
}

/** Ends when the task has ended and all of its output was read. Throws what `lost` throws. */
export async function* followedLog(source: LogSource, request: FollowedLogRequest): AsyncGenerator<LogPiece> {
  const { path, stream, tail, patience, onBegin, signal } = request
  let { attempt, offset } = request.from ?? { attempt: 0, offset: 0 }
  const begin: LogStreamRequest['onBegin'] = (begun) => {
    attempt = begun.attempt ?? 0
    offset = begun.offset
    onBegin?.(begun)
  }
  for (;;) {
    const from = offset
    const position = attempt > 0 ? { attempt: String(attempt), offset: String(offset) } : undefined
    const start = position ?? (tail === undefined ? {} : { tail: String(tail) })
    const query = new URLSearchParams({ stream, follow: 'attempt', ...start })
    const asked = { path: `${path}/logs?${query}`, isFollowed: true, signal, onOpen: () => patience.over() }
    try {
      for await (const bytes of logStream(source, { ...asked, onBegin: begin })) {
        const at = offset
        offset += bytes.length
        yield { attempt, offset: at, bytes }
      }
      // The end of an answer is that of the attempt, or of the service.
      const { status, attempt: newest = 0 } = await source.look(path, signal)
      if (isTerminal(String(status)) && newest === attempt) return
      if (offset === from) await pause(EMPTY_ANSWER_PAUSE_MS, signal)
    } catch (error) {
      await patience.lost(error)
    }
  }
}
