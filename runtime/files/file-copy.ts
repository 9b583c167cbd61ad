/**
 * Copies one file of a task into a directory that only the service can enter.
 *
 * A file system that can share the blocks of two files does so (FICLONE), and the copy costs no space. Otherwise the content
 * is copied in chunks, and holes stay holes. Hard links are never made: all sandboxes share one user, who could change both.
 * The hash is that of the copy, whatever happens to the source meanwhile.
 */
import { close, constants, fstatSync, ftruncateSync, openSync, read, unlinkSync, write } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { systemCodeOf } from '../../shared/contract/errors.ts'

/** Hashing them takes a millisecond. */
export const CHUNK_BYTES = 256 * 1024
const ZEROS = Buffer.alloc(CHUNK_BYTES)

const readAt = promisify(read)
const writeAt = promisify(write)
const closeLater = promisify(close)

/** Makes `to` of the open file `from`, without copying content. False if that is not possible, for whatever reason. */
export type Clone = (from: number, to: Buffer) => Promise<boolean>

export const cloneFile: Clone = async (from, to) => {
  try {
    await copyFile(`/proc/self/fd/${from}`, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch {
    return false // a fault of the disk shows in the copy
  }
}

export interface FileCopy {
  /** Open for reading. */
  readonly from: number
  /** Must not exist. */
  readonly to: Buffer
  readonly clone: Clone
  /** Called after each chunk with its bytes. What it throws ends the copy. */
  readonly onBytes: (bytes: number) => void
}

export interface CopiedFile {
  /** Open; whoever gets it closes it. */
  readonly fd: number
  readonly sha256: string
}

/** Copies a file. Of a failure nothing is left. */
export async function copyOpenFile({ from, to, clone, onBytes }: FileCopy): Promise<CopiedFile> {
  const isShared = await clone(from, to)
  if (!isShared) {
    removeRest(to)
    return await copyRange({ from, start: 0, end: undefined, to, onContent: ({ length }) => onBytes(length) })
  }
  const fd = openSync(to, constants.O_RDONLY | constants.O_NOFOLLOW) // the mode of its source may forbid writing
  return await finished(fd, to, () => readContent(fd, 0, undefined, ({ length }) => onBytes(length)))
}

/** An attempt to share blocks may leave an empty file. */
function removeRest(path: Buffer): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error
  }
}

export interface RangeCopy {
  /** Open for reading. */
  readonly from: number
  /** The first byte. */
  readonly start: number
  /** The byte behind the last one; undefined for all that is there. */
  readonly end: number | undefined
  /** Must not exist. */
  readonly to: Buffer
  /** Called for each chunk, which is used again. What it throws ends the copy. */
  readonly onContent: (content: Buffer) => void
}

/** Copies a part of a file to a new file. Of a failure nothing is left. */
export async function copyRange({ from, start, end, to, onContent }: RangeCopy): Promise<CopiedFile> {
  const fd = openSync(to, NEW_FILE, 0o600)
  return await finished(fd, to, async () => {
    let position = 0
    const sha256 = await readContent(from, start, end, onContent, async (content) => {
      await writeUnlessZeros(fd, content, position)
      position += content.length
    })
    ftruncateSync(fd, position) // a hole at the end
    return sha256
  })
}

/** Makes a file with this content. Calls `check`, which may throw, for each chunk. Of a failure nothing is left. */
export async function newFile(to: Buffer, content: Buffer, check: () => void): Promise<CopiedFile> {
  const fd = openSync(to, NEW_FILE, 0o600)
  return await finished(fd, to, async () => {
    const hash = new Bun.CryptoHasher('sha256')
    for (let position = 0; position < content.length; position += CHUNK_BYTES) {
      check()
      const chunk = content.subarray(position, position + CHUNK_BYTES)
      hash.update(chunk)
      await writeWhole(fd, chunk, position)
    }
    return hash.digest('hex')
  })
}

const NEW_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

async function finished(fd: number, path: Buffer, copy: () => Promise<string>): Promise<CopiedFile> {
  try {
    return { fd, sha256: await copy() }
  } catch (error) {
    await closeLater(fd)
    unlinkSync(path)
    throw error
  }
}

/** Reads a part of a file in chunks. Returns its hash. */
async function readContent(
  from: number,
  start: number,
  end: number | undefined,
  onContent: (content: Buffer) => void,
  write?: (content: Buffer) => Promise<void>,
): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, Math.max(1, (end ?? fstatSync(from).size) - start)))
  let position = start
  while (end === undefined || position < end) {
    const most = end === undefined ? chunk.length : Math.min(chunk.length, end - position)
    const { bytesRead } = await readAt(from, chunk, 0, most, position)
    if (bytesRead === 0 && end !== undefined) throw new Error(`the file ends at byte ${position} of ${end}`)
    if (bytesRead === 0) break
    const content = chunk.subarray(0, bytesRead)
    onContent(content)
    hash.update(content)
    await write?.(content)
    position += bytesRead
  }
  return hash.digest('hex')
}

/** Writes up to 256 KiB. Zeros become a hole, if the file is given its length afterwards. */
export async function writeUnlessZeros(fd: number, content: Buffer, position: number): Promise<void> {
  if (!content.equals(ZEROS.subarray(0, content.length))) await writeWhole(fd, content, position)
}

async function writeWhole(fd: number, content: Buffer, position: number): Promise<void> {
  for (let written = 0; written < content.length; ) {
    const rest = content.length - written
    written += (await writeAt(fd, content, written, rest, position + written)).bytesWritten
  }
}

/** Opens a regular file for reading, at once: a program may hold a lease on it. */
export const openToRead = (path: string): number => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
