/**
 * An output file as a stream, live if wanted: what is there, then what comes, until the task has ended.
 *
 * The kernel tells when a file grows (`fs.watch`). Not every file system does (network, some containers), so the file is
 * looked at from time to time as well. A slow reader holds one chunk, nothing more.
 */
import { close, read, watch } from 'node:fs'
import { promisify } from 'node:util'
import { openPlainFile } from './output.ts'

/** Bytes handed on at once. */
const CHUNK_BYTES = 64 * 1024

/** Milliseconds between two looks at a file of which nothing is heard. */
const LOOK_MS = 1_000

const readAsync = promisify(read)
const closeAsync = promisify(close)

export interface FollowOptions {
  /** Resolves when nothing is written any more; undefined for the present content only. */
  readonly ended?: Promise<unknown> | undefined
}

/** The bytes of the plain file at `path`; none when there is no such file. */
export function logStream(path: string, { ended }: FollowOptions): ReadableStream<Uint8Array> {
  const fd = openPlainFile(path)
  if (fd === undefined) return new Response('').body ?? new ReadableStream({ start: (stream) => stream.close() })

  let isComplete = ended === undefined
  const stop = Promise.withResolvers<void>()
  ended?.finally(() => {
    isComplete = true
    stop.resolve()
  })
  let grown = Promise.withResolvers<void>()
  const watcher = isComplete ? undefined : tryWatch(path, () => grown.resolve())
  let reading: Promise<unknown> | undefined
  let isReleased = false
  const release = async () => {
    if (isReleased) return
    isReleased = true
    stop.resolve()
    watcher?.close()
    await reading?.catch(() => {}) // or it would read from whatever gets the number of the descriptor next
    await closeAsync(fd)
  }

  let position = 0
  const next = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    while (!isReleased) {
      grown = Promise.withResolvers()
      const isLastLook = isComplete // asked before the look: what was written until then is seen by it
      const chunk = new Uint8Array(CHUNK_BYTES)
      const look = readAsync(fd, chunk, 0, chunk.length, position)
      reading = look
      const { bytesRead } = await look
      if (isReleased) return
      if (bytesRead > 0) {
        position += bytesRead
        controller.enqueue(chunk.subarray(0, bytesRead))
        return
      }
      if (isLastLook) {
        controller.close()
        await release()
        return
      }
      await firstOf([grown.promise, stop.promise], LOOK_MS)
    }
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        await next(controller)
      } catch (error) {
        await release()
        throw error
      }
    },
    cancel: release,
  })
}

function tryWatch(path: string, onChange: () => void) {
  try {
    return watch(path, { persistent: false }, onChange)
  } catch {
    return undefined // no watches left: the looks remain
  }
}

async function firstOf(events: readonly Promise<void>[], ms: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([...events, late.promise])
  clearTimeout(timer)
}
