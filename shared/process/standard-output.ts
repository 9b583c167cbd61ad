/**
 * Writes a text to standard output or standard error, where the last text ended.
 *
 * `Bun.write` cuts or lengthens a file that the shell opened (`>> file`): it truncates the file for an empty text, and
 * allocates room for a large one. A plain write(2) does neither, and reports what the system says.
 */
import { write } from 'node:fs'
import { systemCodeOf } from '../contract/errors.ts'

const STDOUT = 1
const STDERR = 2

/** Milliseconds before another try to write to a full pipe that another process has made non-blocking. */
const FULL_PIPE_PAUSE_MS = 5

/** Resolves when all of `text` is written. Throws the system's error. One call at a time. */
export const writeOut = (text: string): Promise<void> => writeAll(STDOUT, text)

/** The same for standard error. */
export const writeError = (text: string | Uint8Array): Promise<void> => writeAll(STDERR, text)

async function writeAll(descriptor: number, text: string | Uint8Array): Promise<void> {
  let rest = typeof text === 'string' ? new TextEncoder().encode(text) : text
  while (rest.length > 0) {
    const written = await writeSome(descriptor, rest)
    if (written === 0) await Bun.sleep(FULL_PIPE_PAUSE_MS)
    rest = rest.subarray(written)
  }
}

/** Resolves to the number of bytes that were written, 0 if the pipe is full. */
function writeSome(descriptor: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) =>
    write(descriptor, bytes, (error, written) => {
      if (error === null) resolve(written)
      else if (systemCodeOf(error) === 'EAGAIN') resolve(0)
      else reject(error)
    }),
  )
}
