/**
 * Keeps the last processes that the user of a service may have (RLIMIT_NPROC) for the service itself.
 *
 * The kernel counts the processes and threads of a user together, and Bun aborts when it cannot have a thread, which it
 * makes whenever it compiles or collects. So tasks must not take all of them.
 */
import { ptr } from 'bun:ffi'
import { loadLibc } from './libc.ts'

const RLIMIT_NPROC = 6
const UNLIMITED = 2n ** 64n - 1n

/** `prlimit` of the service itself. */
const SELF = 0

/** Processes and threads: more than Bun has on a machine of 16 cores. */
export const MAX_RESERVED_PROCESSES = 64

/** What the tasks may have of `limit` processes. Of a small limit three quarters. */
export function processesOfTasks(limit: bigint): bigint {
  if (limit === UNLIMITED) return limit
  const quarter = limit / 4n
  const most = BigInt(MAX_RESERVED_PROCESSES)
  return limit - (quarter < most ? quarter : most)
}

const load = () => loadLibc({ prlimit: { args: ['i32', 'i32', 'ptr', 'ptr'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/** The soft and the hard limit of a process. */
type Limit = readonly [soft: bigint, hard: bigint]

/** Null where the kernel has no such call (it is Linux's), or the process has ended. */
function limitOf(pid: number): Limit | null {
  if (libc === undefined) libc = load()
  const limit = new BigUint64Array(2)
  return libc === null || libc.prlimit(pid, RLIMIT_NPROC, null, ptr(limit)) !== 0 ? null : [limit[0]!, limit[1]!]
}

const setLimit = (pid: number, limit: Limit): void =>
  void libc?.prlimit(pid, RLIMIT_NPROC, ptr(BigUint64Array.from(limit)), null)

/**
 * Lowers the limit of the process `pid`, and so of all that it starts from now on: for a process that forks only when it is
 * asked to, and that itself may use the reserve. Changes nothing where there is no such limit (that of root is not enforced).
 */
export function reserveProcesses(pid: number): void {
  const limit = limitOf(pid)
  if (limit !== null) setLimit(pid, [processesOfTasks(limit[0]), processesOfTasks(limit[1])])
}

/**
 * Starts a process below the reserve. It inherits the limit: a process that forks at once has forked before `start`
 * returns. Meanwhile, which is well below a millisecond, a thread of the service cannot have the reserve either.
 */
export function startBelowReserve<Child extends { readonly pid: number }>(start: () => Child): Child {
  const own = limitOf(SELF)
  if (own === null) return start()
  const [soft, hard] = own
  setLimit(SELF, [processesOfTasks(soft), hard]) // an ordinary user cannot raise the hard limit again
  let child: Child
  try {
    child = start()
  } finally {
    setLimit(SELF, own)
  }
  setLimit(child.pid, [processesOfTasks(soft), processesOfTasks(hard)])
  return child
}
