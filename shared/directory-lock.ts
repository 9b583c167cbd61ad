/**
 * One service per directory. The lock is the kernel's (`flock`): it ends with the process that holds it, however that
 * ends, and no file that was left behind can be mistaken for it.
 */
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf, UsageError } from './errors.ts'
import { loadLibc } from './libc.ts'
import { isThere } from './processes.ts'

const LOCK_EXCLUSIVE = 2
const LOCK_NOT_BLOCKING = 4

const load = () => loadLibc({ flock: { args: ['i32', 'i32'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/**
 * Takes the lock `name` of `directory` for as long as this process lives, or throws `UsageError` naming the process that
 * has it. Services of different kinds have different names: they may share a directory. Where the system has no `flock`
 * nothing is locked. Returns the descriptor: a process that inherits it holds the lock as well.
 */
export function lockDirectory(directory: string, name: string): number {
  const path = join(directory, name)
  const fd = openLock(path, directory)
  if (!tryLockPatiently(fd, path)) {
    const holder = holderOf(path)
    closeSync(fd)
    const process = holder === undefined ? 'another process' : `the process ${holder}`
    const who = holder === undefined || isThere(holder) ? process : `what ${process} left running`
    throw new UsageError(
      `the data directory ${directory} is in use by ${who}: stop it, or choose another with --data-dir`,
    )
  }
  try {
    ftruncateSync(fd, 0)
    writeSync(fd, `${process.pid}\n`)
    return fd
  } catch (error) {
    throw cannotWrite(directory, error)
  }
}

/** Milliseconds for a service that is just ending. Whoever starts a second one by mistake is told after that. */
const PATIENCE_MS = 500

/**
 * Milliseconds that the lock of a service that was killed may outlive it. Another process has it too: one that it was
 * starting in that moment, until it runs its own program, or one that does what was asked of it still. That takes the
 * runtime's spawner 0.2 s on a busy machine when its pipe was full.
 */
const PATIENCE_WITH_THE_DEAD_MS = 10_000
const LOOK_MS = 10

function tryLockPatiently(fd: number, path: string): boolean {
  const since = performance.now()
  for (;;) {
    if (tryLock(fd)) return true
    const holder = holderOf(path)
    const patienceMs = holder === undefined || isThere(holder) ? PATIENCE_MS : PATIENCE_WITH_THE_DEAD_MS
    if (performance.now() - since >= patienceMs) return false
    Bun.sleepSync(LOOK_MS)
  }
}

/** The pid of the service that took the lock. */
function holderOf(path: string): number | undefined {
  const pid = Number(readFileSync(path, 'utf8').trim())
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
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
    `cannot write in the data directory ${directory}: ${reason} (let the user of the service write there, or choose another with --data-dir)`,
  )
}

/**
 * Takes the lock of an open file for as long as this process has it open; false when another process holds it. True as
 * well where the system has no `flock`.
 */
export function tryLock(fd: number): boolean {
  if (libc === undefined) libc = load()
  return libc === null || libc.flock(fd, LOCK_EXCLUSIVE | LOCK_NOT_BLOCKING) === 0
}
