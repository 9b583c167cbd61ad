/** System calls as a kernel before 5.3 has them: a process cannot be held on to. */
import { linuxCall, PIDFD_OPEN, type SystemCall } from '../../runtime/host/pidfd.ts'

export const withoutPidfd = ((call: number, ...rest: [number, number, number, number]) =>
  call === PIDFD_OPEN ? -1n : linuxCall()!(call, ...rest)) as SystemCall
