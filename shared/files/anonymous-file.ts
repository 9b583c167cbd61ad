/**
 * A file without a name, known only by its descriptor, for the standard input of a process.
 *
 * A pipe would have to be written while the process runs, and a process that never reads would block the writer.
 */
import { ptr } from 'bun:ffi'
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadLibc } from '../process/libc.ts'

const MFD_CLOEXEC = 1

const load = () => loadLibc({ memfd_create: { args: ['ptr', 'u32'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/** A descriptor from which `content` can be read. The caller closes it. Throws the system's error. */
export function openAnonymousFile(content: string): number {
  return filled(fileInMemory() ?? unlinkedFile(), content)
}

/** Null if the system has no `memfd_create` or no descriptor is left. */
function fileInMemory(): number | null {
  if (libc === undefined) libc = load()
  const fd = libc?.memfd_create(ptr(Buffer.from('stdin\0')), MFD_CLOEXEC) ?? -1
  return fd < 0 ? null : fd
}

/** A temporary file that is unlinked before it is written. */
export function unlinkedFile(): number {
  const path = join(tmpdir(), `taskmill-stdin-${crypto.randomUUID()}`)
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return fd
}

/** Writes with explicit positions, so that the descriptor's own position stays at the beginning for the reader. */
function filled(fd: number, content: string): number {
  const bytes = Buffer.from(content)
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}
