/** Processes of this machine, from `/proc`: their identity, and the marks of ours in their environment. Linux only. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { systemCodeOf } from '../contract/errors.ts'
import { isObject } from '../text/json.ts'

/** Identifies a process, also when its pid is reused. */
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

/** Changes with every boot. Empty if the system has none. */
export function bootId(): string {
  if (knownBootId !== undefined) return knownBootId
  try {
    knownBootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    knownBootId = ''
  }
  return knownBootId
}

/** Whether a process with that pid exists, zombies included. Works on every system. */
export function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return systemCodeOf(error) === 'EPERM'
  }
}

/** The name of our pid namespace, in letters and digits. Pids of another namespace mean nothing here. */
export function pidNamespace(): string {
  const found = statSync('/proc/self/ns/pid', { throwIfNoEntry: false })
  return (found?.ino ?? 0).toString(36)
}

/** Undefined if there is no such process, or the system cannot tell. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = processStat(pid)
  if (stat === undefined) return undefined
  return { pid, start_time: stat.startTime, boot_id: bootId() }
}

/** Whether the identified process still runs. A zombie does not. */
export function isStillThere(identity: ProcessIdentity): boolean {
  const stat = processStat(identity.pid)
  if (stat === undefined || isZombie(stat)) return false
  return stat.startTime === identity.start_time && bootId() === identity.boot_id
}

/** Pids of processes whose environment has `mark`, a `NAME=VALUE` or the beginning of one. */
export const markedProcesses = (mark: string): number[] =>
  environments()
    .filter(({ environment }) => isMarked(environment, mark))
    .map(({ pid }) => pid)

/** Processes by the value of a variable in their environment. */
export interface Marked {
  readonly byValue: ReadonlyMap<string, readonly number[]>
  /**
   * Processes without an environment. Most never had one, but during an exec a process has none for a moment, and may then
   * have the variable.
   */
  readonly bare: readonly number[]
}

/** Reads the environments of all processes once, for all values of the variable `name`. */
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
      return [] // the process has ended, or belongs to another user
    }
  })
}

/** Whether the environment of a process has `mark`. Throws if it cannot be read. */
export const carriesMark = (pid: number, mark: string): boolean => isMarked(environmentOf(pid), mark)

/** The environment of a process. If its first thread has ended, another thread shows it: some kernels refuse the first one. */
function environmentOf(pid: number): string {
  let text = ''
  let fault: unknown
  try {
    text = readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch (error) {
    fault = error
  }
  if (text !== '') return text
  const stat = processStat(pid)
  if (stat?.state === 'Z' && !isZombie(stat)) {
    const thread = readdirSync(`/proc/${pid}/task`).find((name) => name !== String(pid))
    return readFileSync(`/proc/${pid}/task/${thread}/environ`, 'latin1')
  }
  if (fault !== undefined) throw fault
  return ''
}

const isMarked = (environment: string, mark: string): boolean => `\0${environment}`.includes(`\0${mark}`)

/** Neither a kernel thread nor a zombie, which have no environment either. */
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
  readonly threads: number
  readonly startTime: number
}

export function processStat(pid: number): ProcessStat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // `pid (name) state ppid pgrp ...`. The name may contain any character.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0]!, group: Number(fields[2]), threads: Number(fields[17]), startTime: Number(fields[19]) }
  } catch {
    return undefined
  }
}

/**
 * Whether a process has ended and only waits for its parent. A process whose first thread has ended is in the same state
 * while its other threads run on, and holds its files and ports.
 */
export const isZombie = ({ state, threads }: ProcessStat): boolean => state === 'X' || (state === 'Z' && threads <= 1)

export function allPids(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
}
