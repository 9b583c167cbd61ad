/**
 * Version 2 gives a controller only to groups whose parents enable it, and a parent that does may have no processes of
 * its own. So the service leaves the group it was started in for a leaf of that: alone if nobody else is there, together
 * with everybody where the group is a container's (its process 1 is there), not otherwise, for the processes of a
 * session or another service are not ours to move.
 */
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { systemCodeOf } from '../../shared/errors.ts'
import { CONTROLLERS, type Controller, membersOf, wordsOf, writeAttribute, writeIfThere } from './cgroup-files.ts'

/** Where the processes of the service go. A service manager may start it there (systemd: DelegateSubgroup). */
const LEAF = 'taskmill-service'

/**
 * The group that is ours to divide, when `own` is the one that the service is in. That may be a leaf already: ours, or one
 * that a user was put into below the group that is hers. The second is known by its lack of controllers; since it has
 * those that we enable above it from then on, our own leaf beside it remembers that. To root every group is writable, so
 * there only the name of our leaf tells.
 */
export function topOf(own: string): string {
  const parent = dirname(own)
  if (basename(own) === LEAF) return parent
  if (process.getuid?.() === 0 || !isWritable(join(parent, 'cgroup.subtree_control'))) return own
  const available = wordsOf(own, 'cgroup.controllers')
  const isLeaf = CONTROLLERS.some((controller) => !available.includes(controller))
  if (!isLeaf && !existsSync(join(parent, LEAF))) return own
  mkdirSync(join(parent, LEAF), { recursive: true })
  return parent
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Enables the controller in `top`, in `directory` below it, which is made, and in all between. */
export function enableDownTo(top: string, directory: string, controller: Controller): void {
  let group = top
  enable(group, controller)
  for (const name of relative(top, directory).split('/')) {
    group = join(group, name)
    mkdirSync(group, { recursive: true })
    enable(group, controller)
  }
}

function enable(group: string, controller: Controller): void {
  if (wordsOf(group, 'cgroup.subtree_control').includes(controller)) return
  if (!wordsOf(group, 'cgroup.controllers').includes(controller)) {
    throw new Error(`the ${controller} controller is not enabled for the control group ${group}`)
  }
  try {
    writeAttribute(group, 'cgroup.subtree_control', `+${controller}`)
  } catch (error) {
    if (systemCodeOf(error) !== 'EBUSY') throw error
    vacate(group)
    writeAttribute(group, 'cgroup.subtree_control', `+${controller}`)
  }
}

function vacate(group: string): void {
  const members = membersOf(group)
  const others = members.filter((pid) => pid !== process.pid)
  if (others.length > 0 && !members.includes(1)) {
    throw new Error(`the control group ${group} of the service has ${others.length} processes of others`)
  }
  const leaf = join(group, LEAF)
  mkdirSync(leaf, { recursive: true })
  for (const pid of members) moveInto(leaf, pid)
}

function moveInto(group: string, pid: number): void {
  try {
    writeIfThere(group, 'cgroup.procs', String(pid))
  } catch (error) {
    if (systemCodeOf(error) !== 'ESRCH') throw error // it has just ended
  }
}
