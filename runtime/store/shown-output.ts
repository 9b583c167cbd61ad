/**
 * The output of a task, as far as its status shows it. A task of the `process` profile can replace its output files by
 * anything, so links are not followed and only plain files are read. Nothing is read past the length that the file had
 * when its task ended: another task may have got the open file.
 */
import { close, closeSync, constants, fstatSync, lstatSync, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { messageOf, ServiceError, systemCodeOf } from '../../shared/contract/errors.ts'
import type { Limits } from '../../shared/request/limits.ts'
import { lastLinesStart } from '../../shared/streams/bounded-output.ts'
import { giveOwner } from '../files/closed-path.ts'
import type { TaskDir } from '../files/task-dir.ts'
import type { TaskRow } from './tasks.ts'

/** The beginning of a file, as text. */
export interface InlineText {
  readonly text: string
  readonly truncated: boolean
}

const NOTHING: InlineText = { text: '', truncated: false }

/** The file has content that cannot be had. */
const UNREADABLE: InlineText = { text: '', truncated: true }

/** The length of an output at the end of its task, in bytes. Null while the task runs, and where it is not known. */
export type EndLength = number | null

/** The output of a task that printed nothing. */
export const NO_OUTPUT: Output = { stdout: NOTHING, stderr: NOTHING }

/**
 * The first `maxBytes` of an output, cut at the end of a character. Empty if the file is gone or not a plain file.
 * Empty and truncated if it cannot be read.
 */
export function readInline(path: string, maxBytes: number, length: EndLength): InlineText {
  try {
    return readText(path, maxBytes, length)
  } catch (error) {
    if (systemCodeOf(error) === undefined) throw error
    return UNREADABLE
  }
}

function readText(path: string, maxBytes: number, endLength: EndLength): InlineText {
  const fd = openPlainFile(path)
  if (fd === undefined) return NOTHING
  try {
    const size = servedSize(fd, endLength)
    if (size === 0) return NOTHING
    const bytes = new Uint8Array(Math.min(size, maxBytes))
    const length = readFully(fd, bytes)
    const truncated = size > maxBytes
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true }) // keeps a byte order mark in the text
    // A decoder that waits for more bytes holds back the beginning of a character.
    return { text: decoder.decode(bytes.subarray(0, length), { stream: truncated }), truncated }
  } finally {
    closeSync(fd)
  }
}

/** Bytes of an open output that are served. */
export const servedSize = (fd: number, length: EndLength): number =>
  Math.min(fstatSync(fd).size, length ?? Number.POSITIVE_INFINITY)

/** The last `maxBytes` of an output. A character that begins earlier is replaced. Empty as for `readInline`. */
export function readEnd(path: string, maxBytes: number): string {
  const fd = openPlainFile(path)
  if (fd === undefined) return ''
  try {
    const { size } = fstatSync(fd)
    const bytes = new Uint8Array(Math.min(size, maxBytes))
    const length = readSync(fd, bytes, 0, bytes.length, size - bytes.length)
    return new TextDecoder().decode(bytes.subarray(0, length))
  } finally {
    closeSync(fd)
  }
}

/** Tries and milliseconds in between for a file with a lease: asked to, most holders give it up at once. */
const LEASE_TRIES = 3
const LEASE_PAUSE_MS = 1

/**
 * A descriptor of a plain file, without following a link at the end of its path. Undefined for anything else. A file of
 * ours that the task has closed (`chmod 000`) is made readable again. Throws the error of the system for a file that
 * cannot be opened.
 */
export function openPlainFile(path: string): number | undefined {
  let fd = tryOpen(path)
  if (fd === 'closed') fd = giveOwner(path, 0o400) ? tryOpen(path) : undefined
  if (fd === undefined || fd === 'closed') return undefined
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  return undefined
}

/** A descriptor of anything that can be opened for reading. */
function tryOpen(path: string): number | 'closed' | undefined {
  try {
    return openUnlessLeased(path)
  } catch (error) {
    const code = systemCodeOf(error) ?? ''
    if (code === 'EACCES') return 'closed'
    if (['ENOENT', 'ELOOP', 'ENXIO', 'ENOTDIR'].includes(code)) return undefined
    throw error
  }
}

function openUnlessLeased(path: string): number {
  for (let tries = 1; ; tries++) {
    try {
      // Non-blocking: a task may have put a FIFO here, or hold a lease.
      return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    } catch (error) {
      if (systemCodeOf(error) !== 'EAGAIN' || tries === LEASE_TRIES) throw error
      Bun.sleepSync(LEASE_PAUSE_MS)
    }
  }
}

/** 503 for an output that cannot be read. Anything else is a defect of ours. */
export function unreadableOutput(error: unknown): unknown {
  const code = systemCodeOf(error)
  if (code === undefined) return error
  const cause = code === 'EAGAIN' ? 'another process holds a lease on it' : messageOf(error)
  return new ServiceError(503, `cannot read the output of the task: ${cause} (try again)`, { cause: error })
}

function readFully(fd: number, bytes: Uint8Array): number {
  let length = 0
  while (length < bytes.length) {
    const read = readSync(fd, bytes, length, bytes.length - length, length)
    if (read === 0) break
    length += read
  }
  return length
}

export interface Output {
  readonly stdout: InlineText
  readonly stderr: InlineText
}

/** What `row` printed so far, within its limits. Nothing for a task that is not known to run. */
export function readOutput(
  { status, limits, stdout_bytes, stderr_bytes }: TaskRow,
  { stdout_path, stderr_path }: TaskDir,
): Output {
  if (status === 'accepted') return NO_OUTPUT
  const { stdout_max_bytes, stderr_max_bytes } = JSON.parse(limits) as Limits
  return {
    stdout: readInline(stdout_path, stdout_max_bytes, stdout_bytes),
    stderr: readInline(stderr_path, stderr_max_bytes, stderr_bytes),
  }
}

/** The present length of a log, in bytes. Null if it cannot be read. */
export function lengthOf(path: string): EndLength {
  try {
    const status = lstatSync(path)
    return status.isFile() ? status.size : null
  } catch {
    return null // a task of the `process` profile can put anything in the place of its directory
  }
}

/** Bytes that are looked through, from the end. Lines that begin earlier are cut. */
const MAX_TAIL_BYTES = 16 * 1024 * 1024

/** Bytes of the first look. Each further one has four times as many. */
const FIRST_LOOK_BYTES = 64 * 1024

const readAsync = promisify(read)
const closeAsync = promisify(close)

/** The position of the last `lines` lines of the plain file at `path`; 0 when there is no such file. */
export async function tailStart(path: string, lines: number, length: EndLength = null): Promise<number> {
  const fd = openPlainFile(path)
  if (fd === undefined) return 0
  try {
    const size = servedSize(fd, length)
    for (let look = FIRST_LOOK_BYTES; ; look *= 4) {
      const from = Math.max(0, size - Math.min(look, MAX_TAIL_BYTES))
      const { bytesRead, buffer } = await readAsync(fd, new Uint8Array(size - from), 0, size - from, from)
      const start = lastLinesStart(buffer.subarray(0, bytesRead), lines)
      if (start > 0 || from === 0 || look >= MAX_TAIL_BYTES) return from + start
    }
  } finally {
    await closeAsync(fd)
  }
}
