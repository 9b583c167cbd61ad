/**
 * Limits of the process of a task, as in limits.c, as far as they can be set from outside the child. `supervise.ts` enforces
 * those of time and output.
 */
import { ptr } from 'bun:ffi'
import { loadLibc } from '../../shared/process/libc.ts'
import type { LaunchPlan } from '../launch/plan.ts'

const RLIMIT_CORE = 4
const RLIMIT_NOFILE = process.platform === 'darwin' ? 8 : 7

/** The default of login shells. */
const OPEN_FILES = 1_024

/** Seconds between SIGXCPU and KILL. */
const CPU_GRACE_SEC = 1

/** Limits that do not harm the launcher: it sets them for itself, and the task inherits them. */
export function limitOurselves(): void {
  const libc = loadLibc({
    getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
    setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  } as const)
  if (libc === null) return
  const limit = new BigUint64Array(2)
  libc.setrlimit(RLIMIT_CORE, ptr(limit))
  if (libc.getrlimit(RLIMIT_NOFILE, ptr(limit)) !== 0) return
  const [, hard = 0n] = limit
  limit[0] = hard < BigInt(OPEN_FILES) ? hard : BigInt(OPEN_FILES)
  libc.setrlimit(RLIMIT_NOFILE, ptr(limit))
}

/**
 * The command under the limits that would harm the launcher: a shell sets them for itself, then executes the program.
 * The shell may add variables to the environment.
 */
export function underLimits(plan: LaunchPlan, program: string, args: readonly string[]): string[] {
  const { cpu_time_sec, address_space_bytes } = plan
  const limits = [
    ...(cpu_time_sec === undefined ? [] : [`ulimit -St ${cpu_time_sec}`, `ulimit -Ht ${cpu_time_sec + CPU_GRACE_SEC}`]),
    ...(address_space_bytes === undefined ? [] : [`ulimit -v ${Math.ceil(address_space_bytes / 1_024)}`]),
  ]
  if (limits.length === 0) return [program, ...args]
  return ['/bin/sh', '-c', `${limits.join(' && ')} && exec "$@"`, 'sh', program, ...args]
}
