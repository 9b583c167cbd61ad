/** Launches that the machine refused for want of processes or memory, which it may have soon. Pure. */
import type { ErrorInfo } from '../../shared/contract/runtime.ts'
import type { Limits } from '../../shared/request/limits.ts'
import type { NewEvent } from '../store/events.ts'
import type { Ending } from './ending.ts'

/**
 * The steps at which a process is made (faults.ts), and the errors for which the machine is to blame and not the task.
 * Once the process is in the cgroup of the task, ENOMEM may come from the memory limit of the task.
 */
const REFUSALS: Readonly<Record<string, readonly string[]>> = {
  spawn: ['EAGAIN', 'ENOMEM'],
  fork: ['EAGAIN', 'ENOMEM'],
  namespaces: ['EAGAIN', 'ENOMEM'],
  init: ['EAGAIN'],
  // execve fails so when the user has too many processes.
  exec: ['EAGAIN'],
}

interface FaultDetails {
  readonly step?: unknown
  readonly errno?: unknown
  readonly leftovers_alive?: unknown
}

/** Why the machine refused to start a task. Undefined for every other ending. */
export function refusalOf({ error }: Ending): ErrorInfo | undefined {
  if (error?.code !== 'launch_failed' && error?.code !== 'sandbox_setup_failed') return undefined
  const { step, errno, leftovers_alive } = (error.details ?? {}) as FaultDetails
  const isRefusal = REFUSALS[String(step)]?.includes(String(errno)) === true
  return isRefusal && leftovers_alive === undefined ? error : undefined
}

/** The event of a task whose launch will be tried again. Written once for each task. */
export const launchDelayed = ({ message, details }: ErrorInfo, retryMs: number): NewEvent => ({
  event_type: 'launch_delayed',
  message: `${message}; the launch is tried again for up to ${retryMs} ms`,
  data: { ...(details as object), retry_ms: retryMs },
})

/** The end of a task that could not be started within `--launch-retry-ms`. */
export const gaveUp = ({ code, message, details }: ErrorInfo, tries: number, forMs: number): Ending => ({
  status: 'failed',
  error: {
    code,
    message: `${message}; it was tried ${tries} times in ${Math.round(forMs)} ms (--launch-retry-ms)`,
    details: { ...(details as object), tries },
  },
  finishedAt: Date.now(),
})

/** The end of a task whose wall time ran out before it could be started. */
export const ranOutOfTime = ({ message }: ErrorInfo, { wall_time_ms }: Limits): Ending => ({
  status: 'failed',
  error: {
    code: 'timeout',
    message: 'task exceeded wall_time_ms',
    details: { wall_time_ms, remedy: `it was never started: ${message}` },
  },
  isTimeout: true,
  finishedAt: Date.now(),
})
