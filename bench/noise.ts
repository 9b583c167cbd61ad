/**
 * CPU time that the bench did not get during a measurement: the hypervisor gave it to other guests (steal), or processes
 * that the bench did not start used it (foreign).
 *
 * Foreign time is the busy time of all cores, less that of the bench, its descendants and the kernel threads. Kernel threads
 * write the data of the bench to the disk; a foreign process that keeps them busy uses CPU time of its own. The bench is the
 * subreaper of its descendants and never reaps orphans, so that their CPU time stays readable.
 * Source: proc_stat(5), prctl(2).
 */
import { FFIType } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { loadLibc } from '../shared/process/libc.ts'
import { childrenOf, cpuMs, descendantsCpuMs, orZero } from './process-stats.ts'

/** Shares of the CPU time of all cores, 0 to 1. */
export interface Noise {
  readonly steal: number
  readonly foreign: number
}

/** CPU times in milliseconds since a fixed moment, of all cores together. */
export interface CpuTimes {
  /** What the cores could have done. */
  readonly possibleMs: number
  readonly busyMs: number
  readonly stealMs: number
  /** CPU time of the bench, its servers and its load. */
  readonly ownMs: number
  /** Of each living kernel thread, by pid. A sum would fall when a thread ends. */
  readonly kernelMs: ReadonlyMap<number, number>
}

export const NO_NOISE: Noise = { steal: 0, foreign: 0 }

/** Noise from which a measurement counts as disturbed. */
export const DISTURBED_FROM: Noise = { steal: 0.02, foreign: 0.08 }

export const isDisturbed = ({ steal, foreign }: Noise): boolean =>
  steal >= DISTURBED_FROM.steal || foreign >= DISTURBED_FROM.foreign

/** The larger share of each kind. */
export const worse = (one: Noise, other: Noise): Noise => ({
  steal: Math.max(one.steal, other.steal),
  foreign: Math.max(one.foreign, other.foreign),
})

export const total = ({ steal, foreign }: Noise): number => steal + foreign

/** Limits shares to 0 and 1: ticks of 10 ms, and clocks read one after the other, distort those of short times. */
export function noiseBetween(before: CpuTimes, after: CpuTimes): Noise {
  const possibleMs = after.possibleMs - before.possibleMs
  if (possibleMs <= 0) return NO_NOISE
  let kernelMs = 0
  for (const [pid, ms] of after.kernelMs) kernelMs += ms - (before.kernelMs.get(pid) ?? 0)
  const foreignMs = after.busyMs - before.busyMs - (after.ownMs - before.ownMs) - kernelMs
  return { steal: share((after.stealMs - before.stealMs) / possibleMs), foreign: share(foreignMs / possibleMs) }
}

const share = (value: number): number => Math.min(1, Math.max(0, value))

/** Milliseconds of a clock tick of /proc/stat. */
const TICK_MS = 10

/** The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guests are part of user. */
export function parseCpuLine(stat: string): { readonly busyMs: number; readonly stealMs: number } {
  const [user, nice, system, , , irq, softirq, steal] = /^cpu +(.+)$/m.exec(stat)![1]!.split(' ').map(Number)
  return { busyMs: (user! + nice! + system! + irq! + softirq!) * TICK_MS, stealMs: (steal ?? 0) * TICK_MS }
}

export const cpuTimes = (): CpuTimes => ({
  possibleMs: performance.now() * availableParallelism(),
  ...parseCpuLine(readFileSync('/proc/stat', 'latin1')),
  ownMs: cpuMs(process.pid) + descendantsCpuMs(process.pid),
  kernelMs: kernelThreadsMs(),
})

/** The parent of all kernel threads, except in a PID namespace of its own, which does not show them. */
const KTHREADD_PID = 2

function kernelThreadsMs(): Map<number, number> {
  const times = new Map<number, number>()
  try {
    if (readFileSync(`/proc/${KTHREADD_PID}/comm`, 'latin1') !== 'kthreadd\n') return times
    for (const pid of childrenOf(KTHREADD_PID))
      times.set(
        pid,
        orZero(() => cpuMs(pid)),
      )
  } catch {} // hidden from this user
  return times
}

const PR_SET_CHILD_SUBREAPER = 36

/** Makes the bench the subreaper of its descendants. Without prctl the CPU time of orphans counts as foreign. */
export function adoptOrphans(): void {
  const u64 = FFIType.u64
  const libc = loadLibc({ prctl: { args: [FFIType.i32, u64, u64, u64, u64], returns: FFIType.i32 } })
  libc?.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}
