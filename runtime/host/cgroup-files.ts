/** The files of a cgroup: attributes, members, child groups. All of them are small and answer at once. */
import { closeSync, constants, existsSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'

/** The controllers that limit a task. */
export const CONTROLLERS = ['pids', 'memory'] as const
export type Controller = (typeof CONTROLLERS)[number]

/** Throws the system's error: ENOENT when the kernel lacks the attribute, or the cgroup is gone. */
export function writeAttribute(group: string, name: string, value: string): void {
  // Some attributes can be written but not read.
  const fd = openSync(join(group, name), constants.O_WRONLY)
  try {
    writeSync(fd, value)
  } finally {
    closeSync(fd)
  }
}

/** False when the kernel lacks the attribute, or the cgroup is gone. */
export function writeIfThere(group: string, name: string, value: string): boolean {
  try {
    writeAttribute(group, name, value)
    return true
  } catch (error) {
    // ENODEV: the cgroup was removed meanwhile.
    if (['ENOENT', 'ENODEV'].includes(systemCodeOf(error) ?? '')) return false
    throw error
  }
}

/** Pids in the cgroup itself, without child groups. Processes of another pid namespace are left out. */
export function membersOf(group: string): number[] {
  return readOr(join(group, 'cgroup.procs'), '')
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0)
}

/** Words of an attribute such as `cgroup.controllers`. */
export const wordsOf = (group: string, name: string): string[] => readOr(join(group, name), '').trim().split(/\s+/)

/** The cgroup and all its descendants, the innermost first. */
export function treeOf(group: string): string[] {
  if (!existsSync(group)) return []
  return [...namesBelow(group).flatMap((name) => treeOf(join(group, name))), group]
}

/** Names of the child groups. */
export function namesBelow(group: string): string[] {
  try {
    return readdirSync(group, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return []
    throw error
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENODEV'].includes(systemCodeOf(error) ?? '')) return otherwise
    throw error
  }
}
