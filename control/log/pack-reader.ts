/** Reads packs (`packs.ts`), a block at a time. */
import { closeSync, openSync, readSync } from 'node:fs'
import { type Frame, frameAt } from './journal-format.ts'
import { refuseAccess, refuseFile } from './unreadable-file.ts'

export interface PackFrame extends Frame {
  /** Bytes of the whole frame. */
  readonly bytes: number
}

/** Bytes of a block. */
const READ_BYTES = 1024 * 1024

/** Yields the frames of the pack `path`. A payload is valid until the next frame. Throws `UsageError` if the file is damaged. */
export function* framesOfPack(path: string): Generator<PackFrame> {
  const fd = openOrRefuse(path)
  try {
    let block = new Uint8Array(READ_BYTES)
    let length = 0
    let before = 0
    let isWhole = false
    for (;;) {
      const read = readOrRefuse(path, fd, block.subarray(length))
      length += read
      const bytes = block.subarray(0, length)
      let at = 0
      for (let frame = frameAt(bytes, 0); frame !== undefined; frame = frameAt(bytes, at)) {
        if (frame.kind === 'e') isWhole = true
        else yield { ...frame, bytes: frame.end - at }
        at = frame.end
      }
      before += at
      if (read === 0 && (at < length || !isWhole)) throw refuseFile('pack', path)(`it is damaged at offset ${before}`)
      if (read === 0) return
      block.copyWithin(0, at, length)
      length -= at
      if (length < block.length) continue
      const larger = new Uint8Array(2 * block.length)
      larger.set(block)
      block = larger
    }
  } finally {
    closeSync(fd)
  }
}

function readOrRefuse(path: string, fd: number, bytes: Uint8Array): number {
  try {
    return readSync(fd, bytes)
  } catch (error) {
    throw refuseAccess('pack', path, error)
  }
}

function openOrRefuse(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (error) {
    throw refuseAccess('pack', path, error)
  }
}
