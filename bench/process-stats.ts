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

function fieldBytes(path: string, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(path, 'utf8'))
  if (match === null) throw new Error(`${path} has no ${field}`)
  return Number(match[1]) * 1024
}
