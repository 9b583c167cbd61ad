/**
 * Signals for exactly the process that is meant. A pidfd keeps referring to it, while its pid may go to another
 * process.
 */
import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { loadLibc } from './libc.ts'

/** System call numbers of the architectures that we build for. */
const PIDFD_SEND_SIGNAL = 424
export const PIDFD_OPEN = 434

const load = () =>
  loadLibc({ syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' } } as const)?.syscall ?? null
export type SystemCall = NonNullable<ReturnType<typeof load>>

let systemCall: SystemCall | null | undefined

/** The function for system calls by their number, on Linux. */
export function linuxCall(): SystemCall | null {
  if (systemCall === undefined) systemCall = process.platform === 'linux' ? load() : null
  return systemCall
}

/**
 * Opens a pidfd for `pid` and sends `signal` if `isMeant` then returns true. False when the process does not exist, or
 * is not meant. Linux before 5.3 and macOS have no pidfds: there the signal goes to the pid right after the check.
 */
export function signalIf(
  isMeant: () => boolean,
  pid: number,
  signal: NodeJS.Signals,
  call: SystemCall | null = linuxCall(),
): boolean {
  if (pid <= 1) return false // a process group, or all processes
  const fd = pidfdOf(pid, call)
  if (fd < 0) return isMeant() && sendByPid(pid, signal)
  try {
    return isMeant() && Number(call!(PIDFD_SEND_SIGNAL, fd, constants.signals[signal], 0, 0)) === 0
  } finally {
    closeSync(fd)
  }
}

/** Pidfds open at a time, far below the descriptor limit of a service. */
const HELD_AT_ONCE = 64

/**
 * Kills those processes of `pids` that `stillMeant` returns once their pidfds are open. A pid may have gone to a
 * stranger since the list was made; if it is still in the list, its pidfd refers to the right process or to none. Linux
 * before 5.3 has no pidfds: there the pid is killed right after the check.
 */
export function killEach(
  pids: readonly number[],
  stillMeant: () => readonly number[],
  call: SystemCall | null = linuxCall(),
): void {
  for (let at = 0; at < pids.length; at += HELD_AT_ONCE) {
    const held = pids.slice(at, at + HELD_AT_ONCE).map((pid) => ({ pid, fd: pidfdOf(pid, call) }))
    try {
      const meant = new Set(stillMeant())
      for (const { pid, fd } of held) {
        if (pid <= 1 || !meant.has(pid)) continue
        if (fd < 0) sendByPid(pid, 'SIGKILL')
        else call!(PIDFD_SEND_SIGNAL, fd, constants.signals.SIGKILL, 0, 0)
      }
    } finally {
      for (const { fd } of held) if (fd >= 0) closeSync(fd)
    }
  }
}

const pidfdOf = (pid: number, call: SystemCall | null): number =>
  call === null ? -1 : Number(call(PIDFD_OPEN, pid, 0, 0, 0))

function sendByPid(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false // it has ended, or belongs to another user
  }
}
