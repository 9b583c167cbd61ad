/** Frames that the next sync writes, with the callers that wait for them. */
import type { Waiter } from './group-commit.ts'
import { FrameBuffer, type FrameKind } from './journal-format.ts'
import { NotWritten } from './storage-errors.ts'

export class AppendBuffer {
  readonly #frames = new FrameBuffer()
  #waiters: Waiter[] = []

  /** Bytes of the frames. */
  get length(): number {
    return this.#frames.length
  }

  /**
   * Adds a frame. Resolves when the frame is on disk, rejects when the disk failed. `synced`: see `FrameBuffer.add`.
   */
  add(kind: FrameKind, parts: readonly (string | Uint8Array)[], synced: number): Promise<void> {
    this.#frames.add(kind, parts, synced)
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  /** Writes all frames with one call of `write`. Returns their callers, or rejects them with `NotWritten`. */
  writeTo(write: (frames: FrameBuffer) => void): readonly Waiter[] {
    const waiters = this.#waiters
    if (waiters.length === 0) return []
    this.#waiters = []
    try {
      write(this.#frames)
      return waiters
    } catch (cause) {
      for (const { reject } of waiters) reject(new NotWritten(cause))
      return []
    }
  }

  /** Drops all frames. Returns their callers. */
  clear(): readonly Waiter[] {
    const waiters = this.#waiters
    this.#waiters = []
    this.#frames.clear()
    return waiters
  }
}
