/** Finds the start of the last lines of an output file. */
import { close, read } from 'node:fs'
import { promisify } from 'node:util'
import { lastLinesStart } from '../../shared/streams/bounded-output.ts'
import { type EndLength, openPlainFile, servedSize } from './output.ts'

/** Bytes that are looked through, from the end. Lines that begin earlier are cut. */
export const MAX_TAIL_BYTES = 16 * 1024 * 1024

/** Bytes of the first look. Each further one has four times as many. */
const FIRST_LOOK_BYTES = 64 * 1024

const readAsync = promisify(read)
const closeAsync = promisify(close)

/** The position of the last `lines` lines of the plain file at `path`; 0 when there is no such file. */
export async function tailStart(path: string, lines: number, length: EndLength = null): Promise<number> {
  const fd = openPlainFile(path)
  if (fd === undefined) return 0
  try {
    const size = servedSize(fd, length)
    for (let look = FIRST_LOOK_BYTES; ; look *= 4) {
      const from = Math.max(0, size - Math.min(look, MAX_TAIL_BYTES))
      const { bytesRead, buffer } = await readAsync(fd, new Uint8Array(size - from), 0, size - from, from)
      const start = lastLinesStart(buffer.subarray(0, bytesRead), lines)
      if (start > 0 || from === 0 || look >= MAX_TAIL_BYTES) return from + start
    }
  } finally {
    await closeAsync(fd)
  }
}
