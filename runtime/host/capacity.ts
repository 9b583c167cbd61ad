/**
 * The capacity for the reservations of all tasks: the resources of the machine within the cgroup limits of the service.
 *
 * The limit of each ancestor cgroup applies to the service, too, so the smallest counts. A flag overrides what was
 * found. What cannot be found out is not limited by the ledger.
 */
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { Capacity } from '../../shared/contract/runtime-info.ts'
import type { ServeConfig } from '../config.ts'
import { ownCgroup } from './own-cgroup.ts'
import { readText } from './read-text.ts'

/** An amount, and where it was read: a path or a flag. */
export interface Found {
  readonly amount: number
  readonly source: string
}

export interface FoundCapacity {
  readonly capacity: Capacity
  /** The source of each amount. Absent where there is no amount. */
  readonly sources: { readonly task_slots: string; readonly memory_bytes?: string; readonly pids?: string }
}

export interface Machine {
  /** The directory that stands for the root of the host. */
  readonly root?: string
  /** Bytes of memory, for when no file says. */
  readonly totalMemoryBytes?: () => number
}

type CapacitySettings = Pick<ServeConfig, 'maxRunningTasks' | 'capacityMemoryBytes' | 'capacityPids'>

export function findCapacity(settings: CapacitySettings, machine: Machine = {}): FoundCapacity {
  const { maxRunningTasks, capacityMemoryBytes, capacityPids } = settings
  const memory = given(capacityMemoryBytes, '--capacity-memory-bytes') ?? findMemory(machine)
  const pids = given(capacityPids, '--capacity-pids') ?? findPids(machine)
  return {
    capacity: {
      task_slots: maxRunningTasks,
      ...(memory !== null && { memory_bytes: memory.amount }),
      ...(pids !== null && { pids: pids.amount }),
    },
    sources: {
      task_slots: '--max-running-tasks',
      ...(memory !== null && { memory_bytes: memory.source }),
      ...(pids !== null && { pids: pids.source }),
    },
  }
}

const given = (amount: number | undefined, source: string): Found | null =>
  amount === undefined ? null : { amount, source }

/** Bytes. */
function findMemory({ root = '/', totalMemoryBytes = totalmem }: Machine): Found | null {
  const own = ownCgroup('memory', root)
  const file = own?.version === 1 ? 'memory.limit_in_bytes' : 'memory.max'
  const limits = (own?.directories ?? []).map((directory) => amountIn(join(directory, file)))
  return smallest([...limits, memoryOfMachine(root) ?? { amount: totalMemoryBytes(), source: 'the operating system' }])
}

function memoryOfMachine(root: string): Found | null {
  const source = join(root, 'proc/meminfo')
  const kibibytes = /^MemTotal:\s+(\d+) kB$/m.exec(readText(source) ?? '')?.[1]
  return kibibytes === undefined ? null : { amount: Number(kibibytes) * 1024, source }
}

/** Processes and threads. */
function findPids({ root = '/' }: Machine): Found | null {
  const directories = ownCgroup('pids', root)?.directories ?? []
  const kernel = ['pid_max', 'threads-max'].map((name) => amountIn(join(root, 'proc/sys/kernel', name)))
  return smallest([...directories.map((directory) => amountIn(join(directory, 'pids.max'))), ...kernel])
}

/**
 * The number in a file. `max` means no limit, and so does the number that version 1 writes for it (the largest multiple
 * of a page).
 */
function amountIn(source: string): Found | null {
  const text = readText(source)?.trim() ?? ''
  const amount = /^\d+$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(amount) ? { amount, source } : null
}

/** The smallest amount, and the first of equal ones. */
function smallest(found: readonly (Found | null)[]): Found | null {
  let least: Found | null = null
  for (const one of found) if (one !== null && (least === null || one.amount < least.amount)) least = one
  return least
}

/** Files and sockets that every system lets a process open. */
const UNKNOWN_LIMIT = 1_024

/** How many files and sockets this process may have open. Bun raises the soft limit to the hard one. */
export function maxDescriptors(): number {
  const [, limit] = /^Max open files +(\d+|unlimited)/m.exec(readText('/proc/self/limits') ?? '') ?? []
  if (limit === undefined) return UNKNOWN_LIMIT
  return limit === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(limit)
}
