/** Processes of this machine as the kernel knows them: which one is meant, and which carry a mark of ours. Linux only. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { systemCodeOf } from './errors.ts'
import { isObject } from './json.ts'

/** Tells a process from any other that ever had or will have its pid. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks between boot and start; field 22 of `/proc/PID/stat`. */
  readonly start_time: number
  readonly boot_id: string
}

/** Whether `value`, read from a file, is the identity of a process. */
export const isProcessIdentity = (value: unknown): value is ProcessIdentity =>
  isObject(value) &&
  Number.isInteger(value.pid) &&
  Number.isInteger(value.start_time) &&
  typeof value.boot_id === 'string'

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

/** Whether any process has that pid, be it a zombie; on every system. */
export function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return systemCodeOf(error) === 'EPERM'
  }
}

/** Names the pid namespace that we are in, by letters and digits: a pid of another one means nothing here. */
export function pidNamespace(): string {
  const found = statSync('/proc/self/ns/pid', { throwIfNoEntry: false })
  return (found?.ino ?? 0).toString(36)
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
export const markedProcesses = (mark: string): number[] =>
  environments()
    .filter(({ environment }) => isMarked(environment, mark))
    .map(({ pid }) => pid)

/** Processes by the value that a variable has in their environment; and those that may have one in a moment. */
export interface Marked {
  readonly byValue: ReadonlyMap<string, readonly number[]>
  /**
   * Programs that have no environment: most of them never had one, but one that is just being started (exec) has none for
   * a moment, whatever it will have.
   */
  readonly bare: readonly number[]
}

/** One look at all processes, for all values of the variable `name` that somebody may ask for. */
export function lookForMarks(name: string): Marked {
  const byValue = new Map<string, number[]>()
  const bare: number[] = []
  for (const { pid, environment } of environments()) {
    if (environment === '' && isProgram(pid)) bare.push(pid)
    for (const variable of environment.split('\0')) {
      if (!variable.startsWith(`${name}=`)) continue
      const value = variable.slice(name.length + 1)
      const pids = byValue.get(value)
      if (pids === undefined) byValue.set(value, [pid])
      else pids.push(pid)
    }
  }
  return { byValue, bare }
}

function environments(): { readonly pid: number; readonly environment: string }[] {
  return allPids().flatMap((pid) => {
    try {
      return [{ pid, environment: environmentOf(pid) }]
    } catch {
      return [] // ended, or another user's
    }
  })
}

/** Whether the environment of a process holds `mark` (see above). Throws where it cannot be read. */
export const carriesMark = (pid: number, mark: string): boolean => isMarked(environmentOf(pid), mark)

const environmentOf = (pid: number): string => readFileSync(`/proc/${pid}/environ`, 'latin1')

const isMarked = (environment: string, mark: string): boolean => `\0${environment}`.includes(`\0${mark}`)

/** Not a thread of the kernel, and not a zombie: these have no environment either. */
function isProgram(pid: number): boolean {
  try {
    readlinkSync(`/proc/${pid}/exe`)
    return true
  } catch {
    return false
  }
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
