/**
 * Reserved disk space for what must be written although the disk is full, such as outcomes of tasks.
 *
 * `<data-dir>/reserve` is a file of zeros. In control it becomes the next segment of the journal: its blocks are never
 * free meanwhile, when a task that writes all the time would take them. The runtime service removes it, because a
 * database cannot take it over. Nothing new is accepted or started until the disk has space for another such file.
 */
import { existsSync, renameSync, rmSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../contract/errors.ts'

/** Bytes of the reserve: the outcomes of a thousand attempts, without large results. */
const RESERVE_BYTES = 256 * 1024

/** Maximum share of the disk. It limits the reserve of a small one. */
const SHARE_OF_DISK = 1 / 8

/** Bytes that a probe writes: one block of most file systems. */
const PROBE_BYTES = 4096

export class DiskReserve {
  readonly #dataDir: string
  readonly #path: string
  readonly #bytes: number

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#path = join(dataDir, 'reserve')
    rmSync(this.#path, { force: true }) // of an earlier run, perhaps of another size
    const { blocks, bsize } = statfsSync(dataDir)
    this.#bytes = Math.min(RESERVE_BYTES, Math.floor(blocks * bsize * SHARE_OF_DISK))
    try {
      this.restore()
    } catch {
      // The disk is full at the start: the first write of the journal reports it.
    }
  }

  get exists(): boolean {
    return existsSync(this.#path)
  }

  /** Removes the file, which frees its space. Returns false if there is none. */
  release(): boolean {
    const { exists } = this
    if (exists) rmSync(this.#path, { force: true })
    return exists
  }

  /** Moves the file of zeros to `path`, in the same directory. Returns its bytes. Throws the error of the disk. */
  moveTo(path: string): number {
    renameSync(this.#path, path)
    return this.#bytes
  }

  /** Creates the reserve again. Throws while the disk has less than twice its size free. */
  restore(): void {
    this.probe()
    if (this.exists) return
    if (this.#freeBytes() < 2 * this.#bytes) throw new Error('no space left on the disk')
    try {
      writeFileSync(this.#path, Buffer.alloc(this.#bytes), { mode: 0o600 })
    } catch (error) {
      rmSync(this.#path, { force: true }) // a partial reserve is useless
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
