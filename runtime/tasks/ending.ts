/** Computes the changes of the row and the events of a task at its end. Pure. */
import type { ErrorInfo, ResourceUsage } from '../../shared/contract/runtime.ts'
import type { RuntimeEnd } from '../../shared/contract/runtime-status.ts'
import type { LaunchedProcess } from '../launch/outcome.ts'
import { hasEvent, type NewEvent } from '../store/events.ts'
import type { Change, LiveTask } from '../store/live-task.ts'
import type { EndLength } from '../store/shown-output.ts'

const TIMEOUT_TRIGGERED = 'timeout_triggered'

/** The end of a task, as its launcher reported it or the service found it. Times are milliseconds since 1970. */
export interface Ending {
  readonly status: RuntimeEnd
  readonly error?: ErrorInfo | undefined
  readonly exitCode?: number | undefined
  readonly exitSignal?: number | undefined
  readonly usage?: ResourceUsage | undefined
  /** Absent where no process was started. */
  readonly started?: StartedProcess | undefined
  /** The wall time ran out. */
  readonly isTimeout?: boolean
  /** Why the workspace stays as it is, with `outputs`. */
  readonly outputsFault?: ErrorInfo
  /** The launcher says that no process is left. */
  readonly isOver?: boolean
  /** Lengths of the output. Absent where no process was started. */
  readonly output?: OutputLengths
  readonly finishedAt: number
}

export interface OutputLengths {
  readonly stdout: EndLength
  readonly stderr: EndLength
}

export interface StartedProcess {
  readonly launcherPid: number
  readonly pid: number
  readonly pgid: number
  readonly startedAt: number
}

type NamedProcess = Pick<LaunchedProcess, 'launcher_pid' | 'pid' | 'pgid' | 'started_ms'>

export const startedProcess = ({ launcher_pid, pid, pgid, started_ms }: NamedProcess): StartedProcess => ({
  launcherPid: launcher_pid,
  pid,
  pgid,
  startedAt: started_ms,
})

/** The change of a task whose process was started. */
export const startedChange = ({ launcherPid, pid, pgid, startedAt }: StartedProcess): Change => ({
  patch: { status: 'running', started_at: startedAt, launcher_pid: launcherPid, pid, pgid },
  events: [{ event_type: 'started', message: `process ${pid} started`, data: { pid, pgid }, timestamp: startedAt }],
})

/** The event of expired wall time, unless it is among the `kept` events of the task already. */
export function timeoutEvents(kept: string, timestamp?: number): NewEvent[] {
  if (hasEvent(kept, TIMEOUT_TRIGGERED)) return []
  const message = 'wall_time_ms is over: the task is ended'
  return [{ event_type: TIMEOUT_TRIGGERED, message, ...(timestamp !== undefined && { timestamp }) }]
}

/** The change of a task with a reservation. Includes its start if nothing was heard of that. */
export function endChange(
  { row, events, reservation }: Pick<LiveTask, 'row' | 'events' | 'reservation'>,
  ending: Ending,
): Change {
  const { started, outputsFault, finishedAt } = ending
  const start = started !== undefined && row.started_at === null ? startedChange(started) : undefined
  return {
    patch: { ...start?.patch, ...endPatch(ending), released_at: finishedAt },
    events: [
      ...(start?.events ?? []),
      ...(ending.isTimeout ? timeoutEvents(events, finishedAt) : []),
      ...(outputsFault === undefined ? [] : [outputsNotKept(outputsFault)]),
      { event_type: 'resource_released', message: 'reservation released', data: reservation },
      endEvent(ending),
    ],
  }
}

/** The change of a task that never had a reservation. */
export const endWithoutReservation = (ending: Ending): Change => ({
  patch: endPatch(ending),
  events: [endEvent(ending)],
})

/** The end of a task that was killed before its process was started. */
export const cancelledBeforeStart = (now: number): Ending => ({
  status: 'cancelled',
  error: { code: 'cancelled', message: 'task was cancelled before it started' },
  finishedAt: now,
})

/** The change of a task that was killed while it waited, whether now or under an earlier service. */
export function killedBeforeStart({ row }: Pick<LiveTask, 'row'>, now: number): Change {
  const { patch, events } = endWithoutReservation(cancelledBeforeStart(now))
  if (row.kill_requested_at !== null) return { patch, events }
  return { patch: { ...patch, kill_requested_at: now }, events: [killRequested(), ...events] }
}

export const killRequested = (): NewEvent => ({ event_type: 'kill_requested', message: 'kill requested' })

const outputsNotKept = (error: ErrorInfo): NewEvent => ({
  event_type: 'outputs_not_kept',
  message: error.message,
  data: { error },
})

const endPatch = ({ status, error, exitCode, exitSignal, usage, output, finishedAt }: Ending) => ({
  status,
  finished_at: finishedAt,
  updated_at: finishedAt,
  exit_code: exitCode ?? null,
  exit_signal: exitSignal ?? null,
  error: error === undefined ? null : JSON.stringify(error),
  usage: usage === undefined ? null : JSON.stringify(usage),
  stdout_bytes: output?.stdout ?? null,
  stderr_bytes: output?.stderr ?? null,
})

function endEvent({ status, error, exitCode, exitSignal }: Ending): NewEvent {
  const data = {
    status,
    ...(error !== undefined && { error }),
    ...(exitCode !== undefined && { exit_code: exitCode }),
    ...(exitSignal !== undefined && { exit_signal: exitSignal }),
  }
  if (status === 'success') return { event_type: 'finished', message: 'task succeeded', data }
  return { event_type: status, message: error?.message ?? `task ${status}`, data }
}
