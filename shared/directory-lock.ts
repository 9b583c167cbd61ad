/**
 * One service per directory. The lock is the kernel's (`flock`): it ends with the process that holds it, however that
 * ends, and no file that was left behind can be mistaken for it.
 */
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf, UsageError } from './errors.ts'
import { loadLibc } from './libc.ts'

const LOCK_EXCLUSIVE = 2
const LOCK_NOT_BLOCKING = 4

const load = () => loadLibc({ flock: { args: ['i32', 'i32'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/**
 * Takes the lock `name` of `directory` for as long as this process lives, or throws `UsageError` naming the process that
 * has it. Services of different kinds have different names: they may share a directory. Where the system has no `flock`
 * nothing is locked.
 */
export function lockDirectory(directory: string, name: string): void {
  const path = join(directory, name)
  const fd = openLock(path, directory)
  if (!tryLockPatiently(fd)) {
    const holder = readFileSync(path, 'utf8').trim()
    closeSync(fd)
    const who = holder === '' ? 'another process' : `the process ${holder}`
    throw new UsageError(
      `the data directory ${directory} is in use by ${who}: stop it, or choose another with --data-dir`,
    )
  }
  try {
    ftruncateSync(fd, 0)
    writeSync(fd, `${process.pid}\n`)
  } catch (error) {
    throw cannotWrite(directory, error)
  }
}

/**
 * Milliseconds that the lock of a service that was just killed may outlive it: a process that it was starting in that
 * moment has it too, until it runs its own program.
 */
const PATIENCE_MS = 500
const LOOK_MS = 10

function tryLockPatiently(fd: number): boolean {
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    if (tryLock(fd)) return true
    if (performance.now() >= until) return false
    Bun.sleepSync(LOOK_MS)
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
