/**
 * Bundles from other runtime services, which tasks of this one take as inputs: `<dataDir>/staged/<sha256>`.
 *
 * A bundle is written to a file of another name, hashed on the way, synced and renamed, so one that is there is whole. Its
 * time of modification says when it was used last. Nothing of it is interpreted before a task takes it.
 */
import { constants, lstatSync, mkdirSync, openSync, readdirSync, unlinkSync, utimesSync } from 'node:fs'
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { isSha256 } from '../../shared/contract/file-bundles.ts'
import { syncDirectory } from '../../shared/files/atomic-file.ts'
import { Refusal } from '../refusal.ts'
import type { DirectoryGuard } from './directory-guard.ts'
import { unavailable } from './disk-fault.ts'
import { CHUNK_BYTES, writeUnlessZeros } from './file-copy.ts'

export interface StagedFilesOptions {
  /** Absolute. */
  readonly dataDir: string
  readonly directory: Pick<DirectoryGuard, 'ensure'>
  /** Bytes of one bundle, and of all together. */
  readonly limits: { readonly bundle: number; readonly all: number }
  /** Hashes of bundles that tasks are going to take. */
  readonly needed: () => ReadonlySet<string>
}

/** The end of the names of bundles that are being written. */
const UNFINISHED = '.part'

interface Staged {
  readonly bytes: number
  /** Milliseconds since 1970. */
  usedAt: number
}

export class StagedFiles {
  readonly #options: StagedFilesOptions
  readonly #path: string
  /** By hash. */
  readonly #staged = new Map<string, Staged>()
  /** Bytes of all bundles, also of those that are being written. */
  #bytes = 0

  /** Removes what an earlier service has not finished. */
  constructor(options: StagedFilesOptions) {
    this.#options = options
    this.#path = join(options.dataDir, 'staged')
    for (const name of namesIn(this.#path)) {
      if (name.endsWith(UNFINISHED)) unlinkSync(join(this.#path, name))
      else if (isSha256(name)) this.#found(name)
    }
  }

  #found(sha256: string): void {
    const status = lstatSync(this.#pathOf(sha256), { throwIfNoEntry: false })
    if (status?.isFile()) this.#add(sha256, status.size, status.mtimeMs)
  }

  /** Bytes of all bundles. */
  get bytes(): number {
    return this.#bytes
  }

  get count(): number {
    return this.#staged.size
  }

  /** The size of a bundle that is there, which counts as used now. */
  use(sha256: string): number | undefined {
    const staged = this.#staged.get(sha256)
    if (staged === undefined) return undefined
    staged.usedAt = Date.now()
    try {
      utimesSync(this.#pathOf(sha256), new Date(), new Date())
      return staged.bytes
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT') return staged.bytes // a full disk does not matter here
      this.#drop(sha256)
      return undefined
    }
  }

  /** A descriptor of the bundle, to be closed. Undefined if it is not there. */
  open(sha256: string): number | undefined {
    if (this.use(sha256) === undefined) return undefined
    return openSync(this.#pathOf(sha256), constants.O_RDONLY | constants.O_NOFOLLOW)
  }

  /**
   * Stages the bundle of this hash, which `body` has. Returns its size once it is durable. Throws a `Refusal` or 503; then
   * nothing of it is left. `onChunk` is called for each chunk.
   */
  async receive(sha256: string, body: AsyncIterable<Uint8Array>, onChunk: () => void): Promise<number> {
    const { directory } = this.#options
    directory.ensure()
    const path = join(this.#path, `${crypto.randomUUID()}${UNFINISHED}`)
    let taken = 0
    const take = (bytes: number) => {
      this.#reserve(bytes, taken)
      taken += bytes
      onChunk()
    }
    try {
      await onDisk(async () => {
        mkdirSync(this.#path, { recursive: true, mode: 0o700 })
        const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
        try {
          const found = await writeHashed(file, body, take)
          if (found !== sha256) throw new Refusal('invalid_input', hashFault(found))
          await file.sync()
        } finally {
          await file.close()
        }
        directory.ensure()
        await rename(path, this.#pathOf(sha256))
        await syncDirectory(this.#path)
      })
    } catch (error) {
      this.#bytes -= taken
      await unlink(path).catch(() => {})
      throw error
    }
    this.#bytes -= taken
    this.#drop(sha256) // another caller may have been faster
    this.#add(sha256, taken, Date.now())
    return taken
  }

  /** Makes room for the next bytes of a bundle. Throws a `Refusal`. */
  #reserve(bytes: number, before: number): void {
    const { limits } = this.#options
    if (before + bytes > limits.bundle) {
      throw new Refusal(
        'payload_too_large',
        `the bundle has more than ${limits.bundle} bytes, which is more than all inputs of a task may have (--max-input-bytes)`,
      )
    }
    if (this.#bytes + bytes > limits.all) this.#removeUnneeded(this.#bytes + bytes - limits.all)
    if (this.#bytes + bytes > limits.all) {
      throw new Refusal(
        'resource_limit_exceeded',
        `there is no room for the bundle: all staged files may have ${limits.all} bytes (--max-staged-bytes)`,
        { max_staged_bytes: limits.all },
      )
    }
    this.#bytes += bytes
  }

  /** Removes bundles until so many bytes are free, those that were used long ago first. */
  #removeUnneeded(bytes: number): void {
    const needed = this.#options.needed()
    const since = Date.now() - UNTOUCHED_MS
    const unneeded = [...this.#staged].filter(([sha256, { usedAt }]) => !needed.has(sha256) && usedAt < since)
    let left = bytes
    for (const [sha256, staged] of unneeded.toSorted(([, a], [, b]) => a.usedAt - b.usedAt)) {
      if (left <= 0) return
      this.#remove(sha256)
      left -= staged.bytes
    }
  }

  /** Removes bundles that were last used before that time, unless a task needs them. Returns their number. */
  sweep(beforeMs: number): number {
    const due = [...this.#staged].filter(([, { usedAt }]) => usedAt < beforeMs)
    const needed = due.length === 0 ? undefined : this.#options.needed()
    const unneeded = due.filter(([sha256]) => !needed!.has(sha256))
    for (const [sha256] of unneeded) this.#remove(sha256)
    return unneeded.length
  }

  #remove(sha256: string): void {
    try {
      unlinkSync(this.#pathOf(sha256))
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT') throw error
    }
    this.#drop(sha256)
  }

  #add(sha256: string, bytes: number, usedAt: number): void {
    this.#staged.set(sha256, { bytes, usedAt })
    this.#bytes += bytes
  }

  #drop(sha256: string): void {
    this.#bytes -= this.#staged.get(sha256)?.bytes ?? 0
    this.#staged.delete(sha256)
  }

  #pathOf(sha256: string): string {
    return join(this.#path, sha256)
  }
}

/** None before the first bundle. */
function namesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** A bundle that was just sent or asked for stays for the task that follows it, even if there is no room for others. */
const UNTOUCHED_MS = 60_000

/** Writes the body in chunks, and returns its hash. */
async function writeHashed(
  file: FileHandle,
  body: AsyncIterable<Uint8Array>,
  take: (bytes: number) => void,
): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  let position = 0
  for await (const chunk of body) {
    take(chunk.byteLength)
    for (let at = 0; at < chunk.byteLength; at += CHUNK_BYTES) {
      const content = Buffer.from(chunk.buffer, chunk.byteOffset + at, Math.min(CHUNK_BYTES, chunk.byteLength - at))
      hash.update(content)
      await writeUnlessZeros(file.fd, content, position)
      position += content.length
    }
  }
  await file.truncate(position) // a hole at the end
  return hash.digest('hex')
}

const hashFault = (found: string) => `the body has another hash than its address: its sha256 is ${found}`

/** Errors of the disk become 503. Those of the body stay. */
async function onDisk(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    throw DISK_FAULTS.includes(systemCodeOf(error) ?? '') ? unavailable(error) : error
  }
}

const DISK_FAULTS: readonly string[] = ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EFBIG', 'ENOENT', 'ENOTDIR', 'EACCES']
