/**
 * Preallocated space at the end of a journal segment: zeros that later frames overwrite.
 *
 * To sync a file that has grown, the file system also writes the new length and blocks to a journal of its own, and
 * waits for whatever other files have there. Within preallocated space a sync writes data only. Measured on a disk that
 * others use as well: a sync takes 0.6 of the CPU time, and with 8 clients a graph is answered in two thirds of the
 * time. The zeros are written before any frame behind them, so they never overwrite a frame.
 */
import { ftruncateSync, writeSync } from 'node:fs'

/**
 * Bytes preallocated at a time. Fewer repeat the cost more often; more take longer than a sync should (here 0.1 ms).
 */
const PREALLOCATED_BYTES = 256 * 1024

/** Bytes below which a segment gets no preallocation: a service with little to do keeps small files. */
const SMALL_SEGMENT_BYTES = 64 * 1024

let zeros: Uint8Array | undefined

export class Preallocation {
  readonly #fd: number
  /** End of the preallocated space; 0 if there is none. */
  #end = 0
  /** The disk has no space for it. */
  #isRefused = false

  constructor(fd: number) {
    this.#fd = fd
  }

  /** Called after frames were written up to `length`. Preallocates more space once the last is used up. */
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

  /** Ends the file at `length`. Throws the error of the disk. */
  truncate(length: number): void {
    ftruncateSync(this.#fd, length)
    this.#end = 0
  }
}
