/**
 * From the outcome of a task to its status, its error and its usage. Pure.
 *
 * What made us end the task comes first, because then we caused the way it ended; next what the kernel enforced; last
 * the ending itself. A task that succeeded although one of its processes was killed has succeeded.
 */
import { constants } from 'node:os'
import { explainFault } from './faults.ts'
import type { Outcome } from './outcome.ts'
import { seenPath } from './sandbox-view.ts'

export type ErrorCode =
  | 'timeout'
  | 'cancelled'
  | 'exit_nonzero'
  | 'cpu_limit_exceeded'
  | 'memory_limit_exceeded'
  | 'resource_limit_exceeded'
  | 'launch_failed'
  | 'sandbox_setup_failed'
  | 'invalid_input'
  | 'internal'

export interface TaskError {
  readonly code: ErrorCode
  readonly message: string
  readonly details?: Readonly<Record<string, string | number>>
}

export interface Usage {
  readonly duration_ms: number
  readonly user_cpu_ms?: number
  readonly system_cpu_ms?: number
  readonly max_rss_bytes?: number
  readonly memory_peak_bytes?: number
}

export interface Classified {
  readonly status: 'success' | 'failed' | 'cancelled'
  readonly error?: TaskError
  readonly exit_code?: number
  /** The number of the signal. */
  readonly exit_signal?: number
  readonly usage: Usage
}

/** The part of a request that messages and limits need. */
export interface Asked {
  readonly program: string
  readonly workdir: string
  readonly wall_time_ms: number
  readonly max_output_bytes: number
  readonly disk_bytes?: number
  readonly cpu_time_sec?: number
  readonly memory_bytes?: number
}

/**
 * Share of its CPU time that a task must have used before SIGKILL, or a shell's exit code for it, counts as the
 * kernel's limit. The kernel counts ticks for the limit and precise times for the usage: on a busy machine 0.90 s of 1
 * s were seen.
 */
const USED_UP_SHARE = 0.75

/** The same for SIGXCPU, which hardly any other process sends. */
const USED_UP_SHARE_OF_XCPU = 0.5

/** Seconds between SIGXCPU and KILL. */
const CPU_GRACE_SEC = 1

const { SIGKILL, SIGXCPU } = constants.signals

/** Exit codes of shells whose command was ended by a signal start here. */
const SHELL_SIGNAL_BASE = 128

export function classify(outcome: Outcome, asked: Asked): Classified {
  const { ending, duration_ms, user_cpu_ms, system_cpu_ms, max_rss_bytes, memory_peak_bytes } = outcome
  const error = errorOf(outcome, asked)
  return {
    status: error === undefined ? 'success' : error.code === 'cancelled' ? 'cancelled' : 'failed',
    ...(error === undefined ? {} : { error }),
    ...(ending.how === 'exited' ? { exit_code: ending.exit_code } : {}),
    ...(ending.how === 'signaled' ? { exit_signal: ending.signal } : {}),
    usage: {
      duration_ms,
      ...(user_cpu_ms === undefined ? {} : { user_cpu_ms }),
      ...(system_cpu_ms === undefined ? {} : { system_cpu_ms }),
      ...(max_rss_bytes === undefined ? {} : { max_rss_bytes }),
      ...(memory_peak_bytes === undefined ? {} : { memory_peak_bytes }),
    },
  }
}

function errorOf(outcome: Outcome, asked: Asked): TaskError | undefined {
  const error =
    endedByUs(outcome, asked) ??
    printedTooMuch(outcome, asked) ??
    wroteTooMuch(outcome, asked) ??
    notStarted(outcome, asked) ??
    endedByKernel(outcome, asked) ??
    endedItself(outcome)
  if (error === undefined || outcome.leftovers_alive === 0) return error
  // They run on, or hang in the kernel: an operator has to look.
  return { ...error, details: { ...error.details, leftovers_alive: outcome.leftovers_alive } }
}

/** The time ran out before there was a process for the task. */
const SET_UP_REMEDY = 'its sandbox was still being set up: look for a file system of the host that is stuck'

function endedByUs({ reason, process }: Outcome, { wall_time_ms }: Asked): TaskError | undefined {
  if (reason === 'kill') return { code: 'cancelled', message: 'task was cancelled' }
  if (reason === 'wall_time') {
    const details = { wall_time_ms, ...(process === undefined && { remedy: SET_UP_REMEDY }) }
    return { code: 'timeout', message: 'task exceeded wall_time_ms', details }
  }
  if (reason === 'terminated') {
    const message = 'task was ended from outside: something other than this service told its launcher to terminate'
    const remedy = 'let the service manager end the service alone (systemd: KillMode=process); tasks then run on'
    return { code: 'internal', message, details: { remedy } }
  }
  return undefined
}

/** Also for a task that exceeded the limit and ended before the launcher noticed. */
function printedTooMuch(outcome: Outcome, { max_output_bytes }: Asked): TaskError | undefined {
  const { reason, stdout_bytes = 0, stderr_bytes = 0 } = outcome
  const isTooMuch = Math.max(stdout_bytes, stderr_bytes) > max_output_bytes
  if (reason !== 'output_limit' && !isTooMuch) return undefined
  const stream = stdout_bytes > max_output_bytes ? 'stdout' : 'stderr'
  const message = `task wrote more than ${max_output_bytes} bytes to ${stream}`
  return { code: 'resource_limit_exceeded', message, details: { stream, max_output_bytes } }
}

/** Also for a task that exceeded the limit and ended before the launcher noticed. */
function wroteTooMuch(outcome: Outcome, { disk_bytes }: Asked): TaskError | undefined {
  const { reason, disk_bytes: written = 0, disk_too_deep } = outcome
  if (disk_bytes === undefined) return undefined
  if (disk_too_deep !== undefined) {
    const message = 'workspace has directories more than 256 deep, which cannot be counted for disk_bytes'
    const remedy = 'let the task, and the tasks of its inputs, make directories less deep'
    return { code: 'resource_limit_exceeded', message, details: { disk_bytes, remedy } }
  }
  if (reason !== 'disk_limit' && written <= disk_bytes) return undefined
  const message = `task wrote more than disk_bytes (${disk_bytes} bytes) to its workspace`
  const remedy = 'raise limits.disk_bytes, or let the task write less'
  return { code: 'resource_limit_exceeded', message, details: { disk_bytes, remedy } }
}

function notStarted({ ending, oom_kills = 0 }: Outcome, { program, workdir }: Asked): TaskError | undefined {
  if (ending.how !== 'launch_failed' && ending.how !== 'sandbox_setup_failed') return undefined
  // Memory ran out during the start. The failed step only shows where.
  if (oom_kills > 0) return undefined
  const { how, step, errno, mount } = ending
  const subject = step === 'exec' ? program : step === 'workdir' ? workdir : mount && seenPath(mount)
  return { code: how, ...explainFault(step, errno, subject) }
}

function endedByKernel(outcome: Outcome, { cpu_time_sec, memory_bytes }: Asked): TaskError | undefined {
  const { ending, oom_kills = 0 } = outcome
  if (ending.how === 'exited' && ending.exit_code === 0) return undefined
  if (oom_kills > 0) {
    const details = { oom_kills, ...(memory_bytes === undefined ? {} : { memory_bytes }) }
    return { code: 'memory_limit_exceeded', message: 'task exceeded memory_bytes', details }
  }
  if (cpu_time_sec === undefined || !hasUsedUp(outcome, cpu_time_sec)) return undefined
  return { code: 'cpu_limit_exceeded', message: 'task exceeded cpu_time_sec', details: { cpu_time_sec } }
}

function hasUsedUp({ ending, user_cpu_ms, system_cpu_ms }: Outcome, cpu_time_sec: number): boolean {
  const used = (sec: number, share = USED_UP_SHARE) => (user_cpu_ms ?? 0) + (system_cpu_ms ?? 0) >= sec * 1_000 * share
  if (ending.how === 'signaled') {
    if (ending.signal === SIGXCPU) return user_cpu_ms === undefined || used(cpu_time_sec, USED_UP_SHARE_OF_XCPU)
    return ending.signal === SIGKILL && used(cpu_time_sec + CPU_GRACE_SEC)
  }
  return ending.how === 'exited' && ending.exit_code === SHELL_SIGNAL_BASE + SIGXCPU && used(cpu_time_sec)
}

function endedItself({ ending }: Outcome): TaskError | undefined {
  if (ending.how === 'exited') {
    if (ending.exit_code === 0) return undefined
    return { code: 'exit_nonzero', message: `task exited with code ${ending.exit_code}` }
  }
  if (ending.how === 'signaled') {
    const signal = signalName(ending.signal)
    return { code: 'exit_nonzero', message: `task terminated by signal ${signal}`, details: { signal } }
  }
  return { code: 'internal', message: 'task did not end when it was killed, and was given up' }
}

/** `SIGSEGV`. Real-time signals have numbers only. */
function signalName(number: number): string {
  const [name] = Object.entries(constants.signals).find(([, value]) => value === number) ?? []
  return name ?? `SIG${number}`
}
