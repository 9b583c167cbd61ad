/**
 * Opens what a path in the workspace of a task names, and nothing outside of it.
 *
 * The path is opened one name at a time, each relative to the descriptor of the directory before it and never through a
 * symlink. So a task that replaces a directory by a link meanwhile changes nothing. Every name is opened with O_PATH first,
 * which has no effect on pipes and devices; only a regular file is then opened to be read, through that descriptor. A task
 * can hold a lease on its file, for which an open waits 45 seconds; O_NONBLOCK makes it fail at once.
 *
 * Names relative to a descriptor are `/proc/self/fd/N/name`, so this needs Linux.
 */
import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import type { TaskDir } from './task-dir.ts'

/** Missing in node:fs; the same on all architectures. */
const O_PATH = 0o10000000

/** What is there. Whoever gets a descriptor closes it. */
export type WorkspaceEntry =
  /** `version` changes with the content. */
  | { readonly kind: 'file'; readonly fd: number; readonly size: number; readonly version: string }
  | { readonly kind: 'directory'; readonly fd: number }
  | { readonly kind: 'missing' | 'closed' | 'leased' | 'symlink' | 'other' }

/** A name that a path may have: not empty, `.` or `..`, without slash and NUL. */
export const isName = (name: string): boolean => name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)

/** Opens `names` below the workspace; none for the workspace itself. Every name must be `isName`. */
export function openInWorkspace({ task_dir }: TaskDir, names: readonly string[]): WorkspaceEntry {
  let fd: number | undefined
  try {
    fd = openSync(task_dir, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    let workspaceUid: number | undefined
    const path = ['workspace', ...names]
    for (const [i, name] of path.entries()) {
      const isLast = i === path.length - 1
      const next = openSync(pathAt(fd, name), O_PATH | constants.O_NOFOLLOW | (isLast ? 0 : constants.O_DIRECTORY))
      closeSync(fd)
      fd = next
      workspaceUid ??= fstatSync(fd).uid
    }
    return entryOf(fd, fstatSync(fd), workspaceUid!)
  } catch (error) {
    const kind = KINDS[systemCodeOf(error) ?? '']
    if (kind === undefined) throw error
    return { kind }
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** The path of `name` in the directory `fd`. */
export const pathAt = (fd: number, name: string): string => `/proc/self/fd/${fd}/${name}`

const KINDS: Readonly<Record<string, 'missing' | 'closed' | 'leased'>> = {
  ENOENT: 'missing',
  ENOTDIR: 'missing',
  ENAMETOOLONG: 'missing',
  EACCES: 'closed',
  EPERM: 'closed',
  EAGAIN: 'leased',
}

function entryOf(fd: number, status: Stats, workspaceUid: number): WorkspaceEntry {
  if (status.isSymbolicLink()) return { kind: 'symlink' }
  if (status.isDirectory()) return { kind: 'directory', fd: openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY) }
  if (!status.isFile()) return { kind: 'other' }
  // A task with a user of its own may have linked a file of another user into its workspace.
  if (status.uid !== workspaceUid && workspaceUid !== process.getuid?.()) return { kind: 'closed' }
  const readable = openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK)
  const { ino, mtimeNs } = fstatSync(readable, { bigint: true })
  const version = [ino, status.size, mtimeNs].map((number) => number.toString(36)).join('-')
  return { kind: 'file', fd: readable, size: status.size, version }
}
