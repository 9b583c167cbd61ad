/** Limits of a task: whole numbers above 0, with defaults. Pure. */
import type { TSchema } from '@sinclair/typebox'
import { DEFAULT_INLINE_BYTES, DEFAULT_WALL_TIME_MS, ResourceLimits } from '../contract/runtime-request.ts'
import { requestFault } from './fault.ts'

export interface Limits {
  readonly wall_time_ms: number
  readonly cpu_time_sec?: number
  readonly memory_bytes?: number
  readonly pids_max?: number
  readonly disk_bytes?: number
  readonly stdout_max_bytes: number
  readonly stderr_max_bytes: number
}

const NAMES = Object.keys(ResourceLimits.properties) as (keyof ResourceLimits)[]

/**
 * Throws `RequestFault` with the first fault, in the order of the schema, which has the upper bounds.
 *
 * Larger values of fields without an upper bound become the largest exact integer. No host has as much, so the ledger
 * refuses the task.
 */
export function validLimits(given: ResourceLimits = {}): Limits {
  const limits: ResourceLimits = {}
  for (const name of NAMES) {
    const value = given[name]
    if (value === undefined) continue
    checkCount(`limits.${name}`, value, ResourceLimits.properties[name])
    limits[name] = Math.min(value, Number.MAX_SAFE_INTEGER)
  }
  return {
    wall_time_ms: DEFAULT_WALL_TIME_MS,
    stdout_max_bytes: DEFAULT_INLINE_BYTES,
    stderr_max_bytes: DEFAULT_INLINE_BYTES,
    ...limits,
  }
}

/** Throws `RequestFault` unless `value` is a whole number from 1 to the maximum of its schema. */
export function checkCount(path: string, value: number, { maximum }: TSchema): void {
  if (value <= 0) throw requestFault(`${path} must be greater than 0`)
  if (!Number.isInteger(value)) throw requestFault(`${path} must be a whole number`)
  if (value > (maximum ?? Number.POSITIVE_INFINITY)) throw requestFault(`${path} must be at most ${maximum}`)
}
