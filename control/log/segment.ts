/**
 * One file of the journal: `journal-<number>.log`, open for writing.
 *
 * Writes go to the end of the last frame. Preallocated zeros may follow (`preallocation.ts`). A partial write is cut
 * off, because half a frame before whole frames would count as damage, not as a torn tail.
 */
import { closeSync, fdatasync, openSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { DiskReserve } from '../../shared/files/disk-reserve.ts'
import { Preallocation } from './preallocation.ts'

/** Number of the first segment of a data directory. */
export const FIRST_SEGMENT = 1

export const segmentName = (number: number): string => `journal-${String(number).padStart(10, '0')}.log`

/** The number in the name of a segment, or undefined for other files. */
export const segmentNumber = (name: string): number | undefined => {
  const match = /^journal-(\d{10})\.log$/.exec(name)
  return match === null ? undefined : Number(match[1])
}

/** Writes `bytes` at the offset `at`, in as many calls as the disk needs. */
export function writeAll(fd: number, bytes: Uint8Array, at: number): void {
  for (let written = 0; written < bytes.length; )
    written += writeSync(fd, bytes, written, bytes.length - written, at + written)
}

/** `fdatasync`, beside the event loop. */
export const syncData = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())))

export class Segment {
  readonly number: number
  readonly fd: number
  readonly path: string
  /** Whether the file is that of the reserve. */
  readonly isReserve: boolean
  readonly #preallocation: Preallocation
  /** Bytes of frames. */
  length = 0
  /** Bytes of frames that are known to be on disk. */
  synced = 0

  /** Creates the file, or takes that of the reserve. Throws if the file exists or the disk refuses. */
  constructor(dataDir: string, number: number, reserve?: DiskReserve) {
    this.number = number
    this.path = join(dataDir, segmentName(number))
    this.isReserve = reserve !== undefined
    const zeroBytes = reserve?.moveTo(this.path)
    this.fd = openSync(this.path, zeroBytes === undefined ? 'wx' : 'r+', 0o600)
    this.#preallocation = new Preallocation(this.fd, zeroBytes)
  }

  /** Allocates space for the first frames. If the disk refuses, removes the file, and throws the error of the disk. */
  allocateOrRemove(): void {
    try {
      this.#preallocation.begin()
    } catch (error) {
      this.close()
      unlinkSync(this.path)
      throw error
    }
  }

  /** Writes all of `bytes` or nothing. Throws the error of the disk. */
  write(bytes: Uint8Array): void {
    const before = this.length
    try {
      writeAll(this.fd, bytes, before)
      this.length += bytes.length
      this.#preallocation.extend(this.length)
    } catch (error) {
      this.length = before
      this.#preallocation.cut(before)
      throw error
    }
  }

  /** Removes preallocated zeros and closes the file. */
  finish(): void {
    this.#preallocation.truncate(this.length)
    this.close()
  }

  /** Closes the file with its preallocated zeros, which a start ignores. */
  close(): void {
    closeSync(this.fd)
  }
}
