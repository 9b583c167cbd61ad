/** A process that is held on to: its pid may be given to another one meanwhile, which is not meant then. */
import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { systemCodeOf } from '../../shared/errors.ts'
import { loadLibc } from '../../shared/libc.ts'

/** Numbers of system calls, the same on every machine that we are built for. */
const PIDFD_SEND_SIGNAL = 424
const PIDFD_OPEN = 434

const load = () =>
  loadLibc({ syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' } } as const)?.syscall ?? null
type SystemCall = NonNullable<ReturnType<typeof load>>

let systemCall: SystemCall | null | undefined

/** The function for system calls by their number, where there are these two: on Linux. */
function linuxCall(): SystemCall | null {
  if (systemCall === undefined) systemCall = process.platform === 'linux' ? load() : null
  return systemCall
}

/**
 * Sends `signal` to the process `pid` if `isMeant` says so once it is held on to. False when it is not there, or not meant.
 * Where the system cannot hold on to a process (Linux before 5.3, macOS) it is signalled by its pid right after that.
 */
export function signalIf(
  isMeant: () => boolean,
  pid: number,
  signal: NodeJS.Signals,
  call: SystemCall | null = linuxCall(),
): boolean {
  if (pid <= 1) return false // a group, or everybody
  const fd = Number(call?.(PIDFD_OPEN, pid, 0, 0, 0) ?? -1)
  if (fd < 0) return isMeant() && sendByPid(pid, signal)
  try {
    return isMeant() && Number(call!(PIDFD_SEND_SIGNAL, fd, constants.signals[signal], 0, 0)) === 0
  } finally {
    closeSync(fd)
  }
}

function sendByPid(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if (systemCodeOf(error) === 'ESRCH') return false
    throw error
  }
}
