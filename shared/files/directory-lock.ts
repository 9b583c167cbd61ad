/**
 * A lock that allows one service per directory. It is a `flock`, which the kernel releases when its process ends, so a lock
 * file left by a crash is not locked.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf, UsageError } from '../contract/errors.ts'
import { loadLibc } from '../process/libc.ts'
import { bootId, isThere } from '../process/processes.ts'
import { writeRemedy } from './write-remedy.ts'

const LOCK_EXCLUSIVE = 2
const LOCK_NOT_BLOCKING = 4

const load = () => loadLibc({ flock: { args: ['i32', 'i32'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/** Lock files by service. A control and a runtime service may share a directory. */
export const LOCK_FILES = { control: 'lock', runtime: 'runtime.lock' } as const
export type LockFile = (typeof LOCK_FILES)[keyof typeof LOCK_FILES]

/**
 * Takes the lock `name` of `directory` for the life of this process. Throws `UsageError` with the pid of the process that
 * holds it. Does nothing on a system without `flock`. Returns the descriptor: a process that inherits it holds the lock, too.
 */
export function lockDirectory(directory: string, name: LockFile): number {
  const path = join(directory, name)
  const fd = openLock(path, directory)
  if (!tryLockAWhile(fd, path)) {
    const holder = holderOf(path)
    closeSync(fd)
    const process = holder === undefined ? 'another process' : `the process ${holder}`
    const who = holder === undefined || isThere(holder) ? process : `what ${process} left running`
    throw new UsageError(
      `the data directory ${directory} is in use by ${who}: stop it, or choose another with --data-dir`,
    )
  }
  if (!isAt(fd, path)) {
    closeSync(fd)
    throw new UsageError(`the data directory ${directory} was removed by a start that was refused: start again`)
  }
  try {
    ftruncateSync(fd, 0)
    writeSync(fd, `${process.pid}\n`)
    return fd
  } catch (error) {
    throw cannotWrite(directory, error)
  }
}

/**
 * Identifies a lock on this machine until its next boot. `fd` comes from `lockDirectory`. Every earlier process that held a
 * lock with this id has ended: while it had the lock file open, no other file could get its inode. Undefined if the system
 * cannot tell.
 */
export function lockIdOf(fd: number): string | undefined {
  if (libc === undefined || libc === null || bootId() === '') return undefined
  const { dev, ino } = fstatSync(fd)
  return `${bootId()}/${dev}-${ino}`
}

/** Whether a service of that kind holds the directory. False if that cannot be determined. */
export function isDirectoryLocked(directory: string, name: LockFile): boolean {
  const fd = openExisting(join(directory, name))
  if (fd === undefined) return false
  try {
    return !tryLock(fd)
  } finally {
    closeSync(fd) // also releases the lock if it was free
  }
}

/** Whether the lock that the process `pid` took is held, by that process or by one that has inherited it. */
export const isHeldSince = (directory: string, name: LockFile, pid: number): boolean =>
  isDirectoryLocked(directory, name) && holderOf(join(directory, name)) === pid

/**
 * Calls `work` while holding the lock of the directory, if the lock file exists and is free. No service of that kind can
 * start there meanwhile. Returns whether `work` was called.
 */
export function whileUnlocked(directory: string, name: LockFile, work: () => void): boolean {
  const fd = openExisting(join(directory, name))
  if (fd === undefined) return false
  try {
    if (!tryLock(fd)) return false
    work()
    return true
  } finally {
    closeSync(fd)
  }
}

/** Whether the open file is still at that path. A refused start removes the directory that it made, with the lock file. */
function isAt(fd: number, path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  const own = fstatSync(fd)
  return found?.ino === own.ino && found.dev === own.dev
}

/**
 * Undefined if there is no lock file, or we have no access. In a directory of another user the lock may be a FIFO or a link.
 */
function openExisting(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch {
    return undefined
  }
}

/** Milliseconds to wait for a service that is just ending. A second service started by mistake fails after that. */
const LOCK_WAIT_MS = 500

/**
 * Milliseconds that a lock may outlive its killed service. A child that the service was just starting holds the lock until
 * its exec, and the runtime's fork server holds it until it has served its pipe: 0.2 s on a busy machine for a full pipe.
 */
const KILLED_HOLDER_WAIT_MS = 10_000
const LOOK_MS = 10

function tryLockAWhile(fd: number, path: string): boolean {
  const since = performance.now()
  for (;;) {
    if (tryLock(fd)) return true
    const holder = holderOf(path)
    const patienceMs = holder === undefined || isThere(holder) ? LOCK_WAIT_MS : KILLED_HOLDER_WAIT_MS
    if (performance.now() - since >= patienceMs) return false
    Bun.sleepSync(LOOK_MS)
  }
}

/** The pid of the service that took the lock. */
function holderOf(path: string): number | undefined {
  const pid = Number(readIfThere(path).trim())
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
}

/** Empty if the file is gone: its service removed it with the directory. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return ''
    throw error
  }
}

function openLock(path: string, directory: string): number {
  try {
    return openSync(path, 'a+', 0o600)
  } catch (error) {
    throw cannotWrite(directory, error)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
}

function cannotWrite(directory: string, error: unknown): UsageError {
  const reason = REASONS[systemCodeOf(error) ?? ''] ?? messageOf(error)
  return new UsageError(
    `cannot write in the data directory ${directory}: ${reason} (${writeRemedy(error)}, or choose another with --data-dir)`,
  )
}

/**
 * Takes the lock of an open file until it is closed. False if another process holds it. True on a system without `flock`.
 */
export function tryLock(fd: number): boolean {
  if (libc === undefined) libc = load()
  return libc === null || libc.flock(fd, LOCK_EXCLUSIVE | LOCK_NOT_BLOCKING) === 0
}
