/**
 * What a launcher shows in the directory of its task, and the signal by which it ends the task early.
 *
 * A launcher does not need the service and goes on when that ends or crashes. So a service knows launchers only by the
 * directories of their tasks: the lock says whether the launcher lives, the record which process runs and how it ended.
 * The signal goes to the launcher that the record names, while the lock is held.
 */
import { closeSync, constants as files, openSync, readSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { tryLock } from '../../shared/files/directory-lock.ts'
import { signalIf } from '../../shared/process/pidfd.ts'
import { giveOwner } from '../files/closed-path.ts'
import { KILL_SIGNAL } from './kill-signal.ts'
import { type LaunchedProcess, type Outcome, parseOutcome, parseStarted } from './outcome.ts'

/** Ten times the size of a record. */
const MAX_RECORD_BYTES = 64 * 1024
/** A record is read into this in one call. The last byte is used only by a file that is too long. */
const recordRoom = Buffer.alloc(MAX_RECORD_BYTES + 1)

/** Opens the directory of a task. The task may have removed our rights to it, or to the directories above. */
export function openTaskDirectory(path: string): number {
  const open = () => openSync(path, files.O_RDONLY | files.O_DIRECTORY)
  try {
    return open()
  } catch (error) {
    if (systemCodeOf(error) !== 'EACCES') throw error
    for (const closed of [dirname(dirname(path)), dirname(path), path]) giveOwner(closed, 0o700)
    return open()
  }
}

/** Whether a launcher holds the lock of a task directory. Throws when that cannot be checked. */
export function isLauncherAlive(taskDir: string): boolean {
  let fd: number
  try {
    fd = openTaskDirectory(taskDir)
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false
    throw error
  }
  try {
    return !tryLock(fd)
  } finally {
    closeSync(fd) // releases the lock, if we got it
  }
}

/** The same, or `unknown` when that cannot be checked. */
export function hasLauncher(taskDir: string, unknown: boolean): boolean {
  try {
    return isLauncherAlive(taskDir)
  } catch {
    return unknown
  }
}

/** The record of a launcher that sets up a sandbox: the task has no process yet (outcome.h). */
const SETTING_UP = /^version=1\nlauncher_pid=(\d{1,10})\n/

/** The pid of the launcher of a task, as recorded. */
function findLauncher(taskDir: string): number | undefined {
  const { process } = readRecord(taskDir)
  if (process !== undefined) return process.launcher_pid
  const [, pid] = SETTING_UP.exec(readOr(join(taskDir, 'outcome.new'), '')) ?? []
  return pid === undefined ? undefined : Number(pid)
}

/**
 * Tells the launcher of a task to end it: TERM, grace, KILL. Returns false when there is no launcher, or none whose pid
 * is recorded. True means that the signal was sent; a task that ended at the same moment keeps its own outcome. `known`
 * is the pid if it was heard. Otherwise the record is read, and this throws when it cannot be.
 */
export function requestKill(taskDir: string, known?: Pick<LaunchedProcess, 'launcher_pid'>): boolean {
  const pid = known === undefined ? findLauncher(taskDir) : known.launcher_pid
  return pid !== undefined && signalIf(() => isLauncherAlive(taskDir), pid, KILL_SIGNAL)
}

/** The process of a task, and how it ended. Both are absent as long as they are not known. */
export interface TaskRecord {
  readonly process?: LaunchedProcess
  readonly outcome?: Outcome
}

/**
 * What a launcher has written about its task so far. An outcome is whole or absent. It also counts under its temporary
 * name, if the launcher was killed or the power failed before it was renamed.
 */
export function readRecord(taskDir: string): TaskRecord {
  try {
    return readFiles(taskDir)
  } catch (error) {
    if (systemCodeOf(error) !== 'EACCES') throw error
    closeSync(openTaskDirectory(taskDir)) // restores our rights to the directory
    for (const name of RECORD_NAMES) giveOwner(join(taskDir, name), 0o400)
    return readFiles(taskDir)
  }
}

/** Whether a launcher came as far as making a process of its task, or wrote an outcome without one. */
export function hasBegun(taskDir: string): boolean {
  try {
    return Object.keys(readRecord(taskDir)).length > 0
  } catch {
    return true // only a task puts anything unreadable where its record should be
  }
}

const RECORD_NAMES = ['outcome', 'started', 'outcome.new'] as const

/** Lets a launcher take the directory again. Only for a task that never ran and whose launcher is gone. */
export function removeRecord(taskDir: string): void {
  for (const name of RECORD_NAMES) rmSync(join(taskDir, name), { force: true })
}

function readFiles(taskDir: string): TaskRecord {
  // The outcome may be renamed between two reads.
  for (const name of ['outcome', 'started', 'outcome', 'outcome.new']) {
    const text = readOr(join(taskDir, name), '')
    const outcome = parseOutcome(text)
    const process = outcome?.process ?? parseStarted(text)
    if (outcome === undefined && process === undefined) continue
    return { ...(process === undefined ? {} : { process }), ...(outcome === undefined ? {} : { outcome }) }
  }
  return {}
}

/** A task of the process profile can put links and pipes there. Links are not followed. */
function readOr(path: string, otherwise: string): string {
  let fd: number
  try {
    fd = openSync(path, files.O_RDONLY | files.O_NOFOLLOW | files.O_NONBLOCK)
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENXIO'].includes(systemCodeOf(error) ?? '')) return otherwise
    throw error
  }
  try {
    const length = readSync(fd, recordRoom)
    return length > MAX_RECORD_BYTES ? otherwise : recordRoom.toString('utf8', 0, length)
  } catch (error) {
    if (['EISDIR', 'EAGAIN'].includes(systemCodeOf(error) ?? '')) return otherwise
    throw error
  } finally {
    closeSync(fd)
  }
}
