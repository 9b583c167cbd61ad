/**
 * Reserved disk space for outcomes of running tasks.
 *
 * `<data-dir>/reserve` is a file of zeros. When the disk is full, the file is removed, so that outcomes can still be
 * written. Nothing new is accepted or started until the disk has space for the file again.
 */
import { existsSync, rmSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'

/** Bytes of the reserve: the outcomes of a thousand attempts, without large results. */
const RESERVE_BYTES = 256 * 1024

/** Maximum share of the free space. It limits the reserve of a small disk. */
const SHARE_OF_FREE = 1 / 8

/** Bytes that a probe writes: one block of most file systems. */
const PROBE_BYTES = 4096

export class DiskReserve {
  readonly #dataDir: string
  readonly #path: string
  readonly #bytes: number

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#path = join(dataDir, 'reserve')
    this.release() // the file of an earlier run, perhaps of another size
    this.#bytes = Math.min(RESERVE_BYTES, Math.floor(this.#freeBytes() * SHARE_OF_FREE))
    try {
      this.restore()
    } catch {
      // The disk is full at the start: the first write of the journal reports it.
    }
  }

  /** Frees the reserve. Returns false if there is none. */
  release(): boolean {
    try {
      unlinkSync(this.#path)
      return true
    } catch {
      return false
    }
  }

  /** Creates the reserve again. Throws while the disk has less than twice its size free. */
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

  /** Writes a block. Throws the error of the disk: only a write shows that a disk is full or read-only. */
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
