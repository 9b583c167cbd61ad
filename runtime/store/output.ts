/**
 * The output of a task, as far as its status shows it. A task of the `process` profile can replace its output files by
 * anything, so links are not followed and only plain files are read.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { systemCodeOf } from '../../shared/errors.ts'
import type { Limits } from '../../shared/runtime-request/limits.ts'
import { giveOwner } from './closed-path.ts'
import type { TaskDir } from './task-dir.ts'
import type { TaskRow } from './tasks.ts'

/** The beginning of a file, as text. */
export interface InlineText {
  readonly text: string
  readonly truncated: boolean
}

const NOTHING: InlineText = { text: '', truncated: false }

/** The output of a task that printed nothing. */
export const NO_OUTPUT: Output = { stdout: NOTHING, stderr: NOTHING }

/** The first `maxBytes` of an output, cut at the end of a character. Empty if the file is gone or not a plain file. */
export function readInline(path: string, maxBytes: number): InlineText {
  const fd = openPlainFile(path)
  if (fd === undefined) return NOTHING
  try {
    const { size } = fstatSync(fd)
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

/**
 * A descriptor of a plain file, without following a link at the end of its path. Undefined for anything else. A file of
 * ours that the task has closed (`chmod 000`) is made readable again.
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
    // Non-blocking: a task may have put a FIFO here.
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const code = systemCodeOf(error) ?? ''
    if (code === 'EACCES') return 'closed'
    if (['ENOENT', 'ELOOP', 'ENXIO', 'ENOTDIR'].includes(code)) return undefined
    throw error
  }
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
export function readOutput({ status, limits }: TaskRow, { stdout_path, stderr_path }: TaskDir): Output {
  if (status === 'accepted') return NO_OUTPUT
  const { stdout_max_bytes, stderr_max_bytes } = JSON.parse(limits) as Limits
  return { stdout: readInline(stdout_path, stdout_max_bytes), stderr: readInline(stderr_path, stderr_max_bytes) }
}
