/**
 * Preallocated space at the end of a journal segment: zeros that later frames overwrite.
 *
 * The sync of a file that has grown also writes to the journal of the file system, and waits for the changes of other
 * files there. Within preallocated space, a sync writes only data. Measured on a shared disk: a sync takes 60 % of the
 * CPU time, and with 8 clients an answer takes two thirds of the time. Zeros are written only behind the last frame, so
 * they never overwrite one.
 */
import { ftruncateSync, writeSync } from 'node:fs'

/** Bytes preallocated at a time, which takes 0.1 ms. Fewer bytes repeat the cost more often, more delay a sync. */
const PREALLOCATED_BYTES = 256 * 1024

/**
 * Minimum bytes of a segment that is preallocated: an idle service keeps small files. A segment that follows the reserve gets
 * as many at once.
 */
const SMALL_SEGMENT_BYTES = 64 * 1024

let zeros: Uint8Array | undefined

export class Preallocation {
  readonly #fd: number
  /** End of the preallocated space; 0 if there is none. */
  #end: number
  /** Whether the disk refused a preallocation. */
  #isRefused = false

  /** `end`: bytes of zeros that the file has already. */
  constructor(fd: number, end = 0) {
    this.#fd = fd
    this.#end = end
  }

  /** Called after frames were written up to `length`. Preallocates more space if the last is used up. */
  extend(length: number): void {
    if (length <= this.#end || length < SMALL_SEGMENT_BYTES || this.#isRefused) return
    zeros ??= new Uint8Array(PREALLOCATED_BYTES)
    try {
      this.#end = length + writeSync(this.#fd, zeros, 0, PREALLOCATED_BYTES, length)
    } catch {
      this.#isRefused = true
      this.truncate(length)
    }
  }

  /** Allocates space in an empty file: outcomes of hundreds of attempts. Throws the error of the disk. */
  begin(): void {
    zeros ??= new Uint8Array(PREALLOCATED_BYTES)
    for (let at = 0; at < SMALL_SEGMENT_BYTES; ) at += writeSync(this.#fd, zeros, 0, SMALL_SEGMENT_BYTES - at, at)
    this.#end = SMALL_SEGMENT_BYTES
  }

  /** Removes what follows `length`, but keeps the preallocated space. Throws the error of the disk. */
  cut(length: number): void {
    if (length >= this.#end) {
      this.truncate(length)
      return
    }
    zeros ??= new Uint8Array(PREALLOCATED_BYTES)
    for (let at = length; at < this.#end; ) {
      at += writeSync(this.#fd, zeros, 0, Math.min(PREALLOCATED_BYTES, this.#end - at), at)
    }
    ftruncateSync(this.#fd, this.#end)
  }

  /** Ends the file at `length`. Throws the error of the disk. */
  truncate(length: number): void {
    ftruncateSync(this.#fd, length)
    this.#end = 0
  }
}
