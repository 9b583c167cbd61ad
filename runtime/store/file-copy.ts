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
import { systemCodeOf } from '../../shared/errors.ts'

/** Hashing them takes a millisecond. */
const CHUNK_BYTES = 256 * 1024
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
export async function copyOpenFile(copy: FileCopy): Promise<CopiedFile> {
  const isShared = await copy.clone(copy.from, copy.to)
  if (!isShared) removeRest(copy.to)
  // A shared copy has the mode of its source, which may forbid writing.
  const flags = isShared ? constants.O_RDONLY : constants.O_RDWR | constants.O_CREAT | constants.O_EXCL
  const fd = openSync(copy.to, flags | constants.O_NOFOLLOW, 0o600)
  try {
    return { fd, sha256: await copyContent(isShared ? fd : copy.from, isShared ? undefined : fd, copy.onBytes) }
  } catch (error) {
    await closeLater(fd)
    unlinkSync(copy.to)
    throw error
  }
}

/** An attempt to share blocks may leave an empty file. */
function removeRest(path: Buffer): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error
  }
}

/** The hash of `from`, which is written to `to` if that is given. */
async function copyContent(from: number, to: number | undefined, onBytes: (bytes: number) => void): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, Math.max(1, fstatSync(from).size)))
  let position = 0
  for (;;) {
    const { bytesRead } = await readAt(from, chunk, 0, chunk.length, position)
    if (bytesRead === 0) break
    onBytes(bytesRead)
    const content = chunk.subarray(0, bytesRead)
    hash.update(content)
    if (to !== undefined && !content.equals(ZEROS.subarray(0, bytesRead))) await writeWhole(to, content, position)
    position += bytesRead
  }
  if (to !== undefined) ftruncateSync(to, position) // a hole at the end
  return hash.digest('hex')
}

async function writeWhole(fd: number, content: Buffer, position: number): Promise<void> {
  for (let written = 0; written < content.length; ) {
    const rest = content.length - written
    written += (await writeAt(fd, content, written, rest, position + written)).bytesWritten
  }
}

/** Opens a regular file for reading, at once: a program may hold a lease on it. */
export const openToRead = (path: string): number => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
