/** Launches that the machine refused for want of processes or memory: it may have some soon. Pure. */
import type { ErrorInfo } from '../../shared/contract/runtime.ts'
import type { Limits } from '../../shared/runtime-request/limits.ts'
import type { NewEvent } from '../store/events.ts'
import type { Ending } from './ending.ts'

/**
 * Steps at which a process is made (faults.ts), and the errors that come of the machine and not of the task. A limit of the
 * task on memory may be the reason of ENOMEM once its process is in its group.
 */
const SHORTAGES: Readonly<Record<string, readonly string[]>> = {
  spawn: ['EAGAIN', 'ENOMEM'],
  fork: ['EAGAIN', 'ENOMEM'],
  namespaces: ['EAGAIN', 'ENOMEM'],
  init: ['EAGAIN'],
  // execve says so of a user who has too many processes.
  exec: ['EAGAIN'],
}

interface FaultDetails {
  readonly step?: unknown
  readonly errno?: unknown
  readonly leftovers_alive?: unknown
}

/** Why a task was not started, where that may pass by itself; undefined for every other ending. */
export function shortageOf({ error }: Ending): ErrorInfo | undefined {
  if (error?.code !== 'launch_failed' && error?.code !== 'sandbox_setup_failed') return undefined
  const { step, errno, leftovers_alive } = (error.details ?? {}) as FaultDetails
  const isShortage = SHORTAGES[String(step)]?.includes(String(errno)) === true
  return isShortage && leftovers_alive === undefined ? error : undefined
}

const LAUNCH_DELAYED = 'launch_delayed'

/** What is told of a task whose launch is tried again, once. */
export const launchDelayed = ({ message, details }: ErrorInfo, retryMs: number): NewEvent => ({
  event_type: LAUNCH_DELAYED,
  message: `${message}; the launch is tried again for up to ${retryMs} ms`,
  data: { ...(details as object), retry_ms: retryMs },
})

/** The end of a task that could not be started in all that time. */
export const gaveUp = ({ code, message, details }: ErrorInfo, tries: number, forMs: number): Ending => ({
  status: 'failed',
  error: {
    code,
    message: `${message}; it was tried ${tries} times in ${Math.round(forMs)} ms (--launch-retry-ms)`,
    details: { ...(details as object), tries },
  },
  finishedAt: Date.now(),
})

/** The end of a task whose wall time was over before it could be started. */
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
