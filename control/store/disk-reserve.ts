/**
 * Room on the disk for what must not be lost when it is full.
 *
 * `<data-dir>/reserve` is a file of zeros. When the disk is full it is removed, so that the outcomes of what runs can
 * still be written; nothing new is taken in or started until the disk has room for it again.
 */
import { existsSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Bytes of the reserve: the outcomes of a thousand attempts, large results left out. */
const RESERVE_BYTES = 256 * 1024

/** The reserve of a small disk is this share of what is free at the start. */
const SHARE_OF_FREE = 1 / 8

export class DiskReserve {
  readonly #dataDir: string
  readonly #path: string
  readonly #bytes: number

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#path = join(dataDir, 'reserve')
    this.release() // of an earlier run, perhaps of another size
    this.#bytes = Math.min(RESERVE_BYTES, Math.floor(this.#freeBytes() * SHARE_OF_FREE))
    this.restore()
  }

  /** Gives the room free; false when there is none to give. */
  release(): boolean {
    try {
      unlinkSync(this.#path)
      return true
    } catch {
      return false
    }
  }

  /** Takes the room again; false while the disk has not enough for that and a little more. */
  restore(): boolean {
    try {
      if (existsSync(this.#path)) return true
      if (this.#freeBytes() < 2 * this.#bytes) return false
      writeFileSync(this.#path, Buffer.alloc(this.#bytes), { mode: 0o600 })
      return true
    } catch {
      this.release() // half of it helps nobody
      return false
    }
  }

  #freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#dataDir)
    return bavail * bsize
  }
}
