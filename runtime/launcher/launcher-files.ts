/**
 * What a launcher shows in the directory of its task, and how it is told to end that.
 *
 * A launcher needs nothing of the service and goes on when that ends or crashes. So all that a service asks of a launcher
 * goes through the directory of the task: the lock says whether the launcher lives, the record says which process runs
 * and how it ended. An early end is asked for by a signal to the launcher that the record names, if the lock is held.
 */
import { closeSync, constants as files, openSync, readSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tryLock } from '../../shared/directory-lock.ts'
import { systemCodeOf } from '../../shared/errors.ts'
import { signalIf } from '../host/pidfd.ts'
import { giveOwner } from '../store/closed-path.ts'
import { KILL_SIGNAL } from './kill-signal.ts'
import { type LaunchedProcess, type Outcome, parseOutcome, parseStarted } from './outcome.ts'

/** Ten times what a launcher writes. */
const MAX_RECORD_BYTES = 64 * 1024
/** A record is read into it in one go; the last byte is used by one that is too long. */
const recordRoom = Buffer.alloc(MAX_RECORD_BYTES + 1)

/** Opens the directory of a task, which may have closed it, or one of those of the service above it. */
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

/** Whether a launcher is at work in the directory of a task. Throws when that cannot be asked. */
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
    closeSync(fd) // and with it the lock, if we got it
  }
}

/** The record of a launcher that sets a sandbox up: there is no task yet (outcome.h). */
const SETTING_UP = /^version=1\nlauncher_pid=(\d{1,10})\n/

/** The pid of the launcher that is to be asked for the end of a task. */
function findLauncher(taskDir: string): number | undefined {
  const { process } = readRecord(taskDir)
  if (process !== undefined) return process.launcher_pid
  const [, pid] = SETTING_UP.exec(readOr(join(taskDir, 'outcome.new'), '')) ?? []
  return pid === undefined ? undefined : Number(pid)
}

/**
 * Asks the launcher of a task to end it: TERM, grace, KILL. False when there is none any more, or none that has written
 * down who it is. True means that it was told; a task that came to its end in the same moment still has its own outcome.
 * `known` is who runs where that was heard; otherwise the record is asked, and what keeps it from being read is thrown.
 */
export function requestKill(taskDir: string, known?: Pick<LaunchedProcess, 'launcher_pid'>): boolean {
  const pid = known === undefined ? findLauncher(taskDir) : known.launcher_pid
  return pid !== undefined && signalIf(() => isLauncherAlive(taskDir), pid, KILL_SIGNAL)
}

/** Who runs, or ran, and how it ended. Each is absent as long as it is not known. */
export interface TaskRecord {
  readonly process?: LaunchedProcess
  readonly outcome?: Outcome
}

/**
 * What the launcher of a task has written down so far. An outcome is whole or absent. One that a launcher could not give
 * its name any more, because it was killed or the power went in that moment, counts as well.
 */
export function readRecord(taskDir: string): TaskRecord {
  try {
    return readFiles(taskDir)
  } catch (error) {
    if (systemCodeOf(error) !== 'EACCES') throw error
    closeSync(openTaskDirectory(taskDir)) // as the task left it: closed
    for (const name of RECORD_NAMES) giveOwner(join(taskDir, name), 0o400)
    return readFiles(taskDir)
  }
}

const RECORD_NAMES = ['outcome', 'started', 'outcome.new'] as const

/** Makes the directory of a task that never ran, and whose launcher is gone, one that a launcher takes. */
export function removeRecord(taskDir: string): void {
  for (const name of RECORD_NAMES) rmSync(join(taskDir, name), { force: true })
}

function readFiles(taskDir: string): TaskRecord {
  // It may get its last name between two looks.
  for (const name of ['outcome', 'started', 'outcome', 'outcome.new']) {
    const text = readOr(join(taskDir, name), '')
    const outcome = parseOutcome(text)
    const process = outcome?.process ?? parseStarted(text)
    if (outcome === undefined && process === undefined) continue
    return { ...(process === undefined ? {} : { process }), ...(outcome === undefined ? {} : { outcome }) }
  }
  return {}
}

/** A task of the profile process can put anything there: links and pipes, too, which are not followed. */
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
