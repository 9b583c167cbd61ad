/** Processes of this machine as the kernel knows them: which one is meant, and which carry a mark of ours. Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

/** Tells a process from any other that ever had or will have its pid. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks between boot and start; field 22 of `/proc/PID/stat`. */
  readonly start_time: number
  readonly boot_id: string
}

let knownBootId: string | undefined

/** Changes with every boot; empty where the system does not tell. */
export function bootId(): string {
  if (knownBootId !== undefined) return knownBootId
  try {
    knownBootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    knownBootId = ''
  }
  return knownBootId
}

/** Undefined when there is no such process, or no way to tell. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = processStat(pid)
  if (stat === undefined) return undefined
  return { pid, start_time: stat.startTime, boot_id: bootId() }
}

/** Whether the very process that was identified once is still there; a zombie is not. */
export function isStillThere(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid)
  if (now === undefined || processStat(identity.pid)?.state === 'Z') return false
  return now.start_time === identity.start_time && now.boot_id === identity.boot_id
}

/** Pids of processes whose environment holds `mark`, a `NAME=VALUE` or its beginning. */
export function markedProcesses(mark: string): number[] {
  return allPids().filter((pid) => {
    try {
      return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(`\0${mark}`)
    } catch {
      return false // ended, or another user's
    }
  })
}

export interface ProcessStat {
  readonly state: string
  readonly group: number
  readonly startTime: number
}

export function processStat(pid: number): ProcessStat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // `pid (name) state ppid pgrp ...`, where the name may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0]!, group: Number(fields[2]), startTime: Number(fields[19]) }
  } catch {
    return undefined
  }
}

export function allPids(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
}
