/** The system calls of a kernel before 5.3, which has no pidfds. */
import { linuxCall, PIDFD_OPEN, type SystemCall } from '../../shared/process/pidfd.ts'

export const withoutPidfd = ((call: number, ...rest: [number, number, number, number]) =>
  call === PIDFD_OPEN ? -1n : linuxCall()!(call, ...rest)) as SystemCall
