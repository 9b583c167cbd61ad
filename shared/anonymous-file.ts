/**
 * A file without a name, known only by its descriptor: what a process may read as its standard input.
 *
 * A file, because a pipe has to be written while the process runs, and one that never reads would hold up the writer.
 */
import { ptr } from 'bun:ffi'
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadLibc } from './libc.ts'

const MFD_CLOEXEC = 1

const load = () => loadLibc({ memfd_create: { args: ['ptr', 'u32'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/** A descriptor, the caller's to close, from which `content` is read from its beginning. Throws the system's error. */
export function openAnonymousFile(content: string): number {
  return filled(fileInMemory() ?? unlinkedFile(), content)
}

/** Null where the system has no `memfd_create` or no descriptor is left. */
function fileInMemory(): number | null {
  if (libc === undefined) libc = load()
  const fd = libc?.memfd_create(ptr(Buffer.from('stdin\0')), MFD_CLOEXEC) ?? -1
  return fd < 0 ? null : fd
}

/** A temporary file whose name is gone before anything is in it. */
export function unlinkedFile(): number {
  const path = join(tmpdir(), `taskmill-stdin-${crypto.randomUUID()}`)
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return fd
}

/** Writes at a position, which leaves the descriptor's own at the beginning, where the reader starts. */
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
