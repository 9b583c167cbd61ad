/** A part of an open file as a stream. A slow reader costs one chunk of memory. */
import { close, read } from 'node:fs'
import { promisify } from 'node:util'

const CHUNK_BYTES = 256 * 1024

const readAt = promisify(read)

/**
 * The bytes from `from` to `to`. Fails if the file becomes shorter meanwhile. Closes `fd` at the end, also if the reader
 * leaves.
 */
export function fileStream(fd: number, from: number, to: number): ReadableStream<Uint8Array> {
  let position = from
  let isOpen = true
  const release = () => {
    if (isOpen) close(fd)
    isOpen = false
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (position < to) {
            const chunk = new Uint8Array(Math.min(CHUNK_BYTES, to - position))
            const { bytesRead } = await readAt(fd, chunk, 0, chunk.length, position)
            if (bytesRead === 0) throw new Error(`the file became shorter: it ends at byte ${position} of ${to}`)
            position += bytesRead
            controller.enqueue(chunk.subarray(0, bytesRead))
          }
          if (position < to) return
          controller.close()
          release()
        } catch (error) {
          release()
          throw error
        }
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
}
