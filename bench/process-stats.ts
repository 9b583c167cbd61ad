/** Reads figures of a process from Linux: memory from `status` and `smaps_rollup`, CPU time from its CPU clock. */
import { FFIType } from 'bun:ffi'
import { readdirSync, readFileSync } from 'node:fs'
import { loadLibc } from '../shared/process/libc.ts'

const libc = loadLibc({ clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 } })!

/** Of a clock id: the time that the scheduler counted, not that of a sampled tick. */
const CPUCLOCK_SCHED = 2

/** Peak of the resident memory, in bytes. */
export const peakMemoryBytes = (pid: number): number => fieldBytes(`/proc/${pid}/status`, 'VmHWM')

/** Resident memory in bytes; pages shared with other processes count by their share. */
export const memoryBytes = (pid: number): number => fieldBytes(`/proc/${pid}/smaps_rollup`, 'Pss')

/**
 * CPU time of a process in milliseconds, with that of its ended threads. Source: clock_getcpuclockid(3); the kernel makes
 * the clock's id of the pid. Much finer than the ticks of `stat`.
 */
export function cpuMs(pid: number): number {
  const time = new BigInt64Array(2)
  if (libc.clock_gettime((~pid << 3) | CPUCLOCK_SCHED, time) !== 0) throw new Error(`no process ${pid}`)
  return Number(time[0]) * 1000 + Number(time[1]) / 1e6
}

/** Milliseconds of a clock tick, as the kernel counts for programs, on every Linux. */
const TICK_MS = 10

/** CPU time of what a process started, and of what that started: ended, in ticks of 10 ms, or not. */
export function descendantsCpuMs(pid: number): number {
  const ofLiving = childrenOf(pid).map((child) => orZero(() => cpuMs(child) + descendantsCpuMs(child)))
  return waitedForCpuMs(pid) + ofLiving.reduce((sum, ms) => sum + ms, 0)
}

/** Time that the kernel worked for a process and for all that it started, in ticks of 10 ms. */
export function systemMs(pid: number): number {
  const ofLiving = childrenOf(pid).map((child) => orZero(() => systemMs(child)))
  const { stime, cstime } = ticksOf(pid)
  return (stime + cstime) * TICK_MS + ofLiving.reduce((sum, ms) => sum + ms, 0)
}

/** CPU time of the processes that a process started and has waited for, with what those waited for. */
function waitedForCpuMs(pid: number): number {
  const { cutime, cstime } = ticksOf(pid)
  return (cutime + cstime) * TICK_MS
}

function ticksOf(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // `pid (name) state ppid ...`, where the name may hold anything; these are fields 15 to 17.
  const [stime, cutime, cstime] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(12, 15)
    .map(Number)
  return { stime: stime!, cutime: cutime!, cstime: cstime! }
}

/** Of a process that may end between two looks. */
export function orZero(figure: () => number): number {
  try {
    return figure()
  } catch {
    return 0
  }
}

/** Pids of the children of a process. */
export function childrenOf(pid: number): number[] {
  const lists = readdirSync(`/proc/${pid}/task`).map((thread) => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
    } catch {
      return '' // the thread ended between the two looks
    }
  })
  return lists.join(' ').split(' ').map(Number).filter(Boolean)
}

/** Pids of the children of a process, of theirs, and so on. */
export const descendantsOf = (pid: number): number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])

function fieldBytes(path: string, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(path, 'utf8'))
  if (match === null) throw new Error(`${path} has no ${field}`)
  return Number(match[1]) * 1024
}
