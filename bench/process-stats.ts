/** What Linux says of a process: memory from `status` and `smaps_rollup`, CPU time from `schedstat`. */
import { readdirSync, readFileSync } from 'node:fs'

/** Peak of the resident memory, in bytes. */
export const peakMemoryBytes = (pid: number): number => fieldBytes(`/proc/${pid}/status`, 'VmHWM')

/** Resident memory in bytes; pages shared with other processes count by their share. */
export const memoryBytes = (pid: number): number => fieldBytes(`/proc/${pid}/smaps_rollup`, 'Pss')

/** CPU time that the living threads of a process have used, in milliseconds; much finer than the ticks of `stat`. */
export function cpuMs(pid: number): number {
  let ns = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    } catch {} // the thread ended between the two looks
  }
  return ns / 1e6
}

/** Milliseconds of a clock tick, as the kernel counts for programs, on every Linux. */
const TICK_MS = 10

/** CPU time of what a process started, and of what that started: ended, in ticks of 10 ms, or not. */
export function descendantsCpuMs(pid: number): number {
  const ofLiving = childrenOf(pid).map((child) => orZero(() => cpuMs(child) + descendantsCpuMs(child)))
  return waitedForCpuMs(pid) + ofLiving.reduce((sum, ms) => sum + ms, 0)
}

/** CPU time of the processes that a process started and has waited for, with what those waited for. */
function waitedForCpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // `pid (name) state ppid ...`, where the name may hold anything; cutime and cstime are fields 16 and 17.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS
}

/** Of a process that may end between two looks. */
function orZero(figure: () => number): number {
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
