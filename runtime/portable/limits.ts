/** Limits of a task's process, as limits.c sets them, as far as one can from outside of the child. */
import { ptr } from 'bun:ffi'
import { loadLibc } from '../../shared/libc.ts'
import type { LaunchPlan } from '../launcher/plan.ts'

const RLIMIT_CORE = 4
const RLIMIT_NOFILE = process.platform === 'darwin' ? 8 : 7

/** What login shells give. */
const OPEN_FILES = 1_024

/** Seconds between SIGXCPU and KILL. */
const CPU_GRACE_SEC = 1

/** Those that do us no harm: the launcher sets them for itself, and the task inherits them. */
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
 * The command, under the limits that would do us harm: a shell takes them on itself, then becomes the program. It may add
 * variables of its own to the environment.
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
