/**
 * Writes a large frame to a file of its own without blocking the event loop. The checksum is computed in steps; threads
 * write and sync the file. The journal then makes the file one of its segments.
 */
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { type FrameKind, frameHeader, LINE_END } from './journal-format.ts'

/** Bytes of one checksum step. A step takes 0.1 ms. */
const CHECKSUM_STEP_BYTES = 1024 * 1024

/** Bytes of one write. */
const WRITE_BYTES = 4 * 1024 * 1024

export interface LargeFrame {
  readonly kind: FrameKind
  readonly parts: readonly (string | Uint8Array)[]
}

/**
 * Writes a segment with this one frame to the new file `path` and syncs it with `sync`. Returns its size in bytes.
 * Throws the error of the disk and removes the file.
 */
export async function writeLargeFrame(
  path: string,
  { kind, parts }: LargeFrame,
  sync: (fd: number) => Promise<void>,
): Promise<number> {
  const payload = parts.map((part) => (typeof part === 'string' ? new TextEncoder().encode(part) : part))
  const length = payload.reduce((sum, part) => sum + part.length, 0)
  const header = frameHeader({ checksum: await runCooperatively(checksumOf(payload)), length, synced: 0, kind })
  const file = await open(path, 'wx', 0o600)
  try {
    for (const part of [header, ...payload, Uint8Array.of(LINE_END)]) await writeAll(file, part)
    await sync(file.fd)
  } catch (error) {
    await unlink(path).catch(() => {}) // the next start removes a file that stays
    throw error
  } finally {
    await file.close()
  }
  return header.length + length + 1
}

function* checksumOf(payload: readonly Uint8Array[]): Steps<number> {
  let checksum = 0
  for (const part of payload) {
    for (let at = 0; at < part.length; at += CHECKSUM_STEP_BYTES) {
      checksum = Bun.hash.crc32(part.subarray(at, at + CHECKSUM_STEP_BYTES), checksum)
      yield
    }
  }
  return checksum
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, at, Math.min(WRITE_BYTES, bytes.length - at))
    at += bytesWritten
  }
}
