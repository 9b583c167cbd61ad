/**
 * Room on the disk for what must not be lost when it is full.
 *
 * `<data-dir>/reserve` is a file of zeros. When the disk is full it is removed, so that the outcomes of what runs can
 * still be written; nothing new is taken in or started until the disk has room for it again.
 */
import { existsSync, rmSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'

/** Bytes of the reserve: the outcomes of a thousand attempts, large results left out. */
const RESERVE_BYTES = 256 * 1024

/** The reserve of a small disk is this share of what is free at the start. */
const SHARE_OF_FREE = 1 / 8

/** Bytes that a probe writes: a block of most file systems. */
const PROBE_BYTES = 4096

export class DiskReserve {
  readonly #dataDir: string
  readonly #path: string
  readonly #bytes: number

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#path = join(dataDir, 'reserve')
    this.release() // of an earlier run, perhaps of another size
    this.#bytes = Math.min(RESERVE_BYTES, Math.floor(this.#freeBytes() * SHARE_OF_FREE))
    try {
      this.restore()
    } catch {
      // Full at the start: the first write of the journal says so.
    }
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

  /** Takes the room again. Throws while the disk has not enough for that and a little more. */
  restore(): void {
    this.probe()
    if (existsSync(this.#path)) return
    if (this.#freeBytes() < 2 * this.#bytes) throw new Error('no space left on the disk')
    try {
      writeFileSync(this.#path, Buffer.alloc(this.#bytes), { mode: 0o600 })
    } catch (error) {
      this.release() // a partial reserve is useless
      throw error
    }
  }

  /** Tries whether the disk takes a write, or throws what it says: a full or read-only one shows it nowhere else. */
  probe(): void {
    const path = join(this.#dataDir, '.probe')
    try {
      writeFileSync(path, Buffer.alloc(PROBE_BYTES), { mode: 0o600 })
      unlinkSync(path)
    } catch (cause) {
      rmSync(path, { force: true })
      throw new Error(`the data directory takes no writes: ${systemCodeOf(cause) ?? messageOf(cause)}`, { cause })
    }
  }

  #freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#dataDir)
    return bavail * bsize
  }
}
