/**
 * An output file, or a part of it, as a stream: its content, and on request what is appended until the task has ended. A slow reader
 * costs one chunk of memory. All readers share the open file (`shared-log.ts`).
 */

import { SharedLog } from './shared-log.ts'
import type { EndLength } from './shown-output.ts'

export interface LogRange {
  /** The first byte. Default 0. */
  readonly from?: number
  /** Most bytes. Default: all. */
  readonly limit?: number | undefined
  /** The length of the output, once the task has ended. */
  readonly length?: () => EndLength
  /** Resolves when nothing more will be written. Undefined for the present content only. */
  readonly ended?: Promise<unknown> | undefined
}

/** The bytes of the plain file at `path`; none when there is no such file. */
export function logStream(
  path: string,
  { from = 0, limit = Number.POSITIVE_INFINITY, length, ended }: LogRange,
): ReadableStream<Uint8Array> {
  const log = SharedLog.enter(path)
  if (log === undefined) return new Response('').body ?? new ReadableStream({ start: (stream) => stream.close() })
  if (ended !== undefined) log.follow(path, ended)

  let position = from
  const end = () => Math.min(from + limit, length?.() ?? Number.POSITIVE_INFINITY)
  let isReleased = false
  /** Ends the wait for more. */
  let stopWaiting = () => {}
  const release = () => {
    if (isReleased) return
    isReleased = true
    stopWaiting()
    log.leave()
  }
  const hasMore = () =>
    new Promise<void>((resolve) => {
      const forget = log.whenGrown(resolve)
      stopWaiting = () => {
        forget()
        resolve()
      }
    })
  const next = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    while (!isReleased) {
      // Registered before the read: an append after it ends the wait, and one before it is read.
      const more = hasMore()
      const isLastLook = ended === undefined || log.isComplete
      const bytes = (await log.read(position)).subarray(0, Math.max(0, end() - position))
      if (isReleased) return
      if (bytes.length > 0) {
        stopWaiting()
        position += bytes.length
        controller.enqueue(bytes)
        return
      }
      if (isLastLook) {
        controller.close()
        release()
        return
      }
      await more
    }
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        await next(controller)
      } catch (error) {
        release()
        throw error
      }
    },
    cancel: release,
  })
}
