/**
 * Version 2 gives a controller only to cgroups whose parents enable it, and such a parent must not have processes of
 * its own. So the service moves from the cgroup it was started in to a leaf below it: alone if it is the only process
 * there, together with all others where the cgroup is that of a container (process 1 is in it). Otherwise it stays,
 * because the processes of a session or another service are not ours to move.
 */
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { CONTROLLERS, type Controller, membersOf, wordsOf, writeAttribute, writeIfThere } from './cgroup-files.ts'

/** The cgroup for the processes of the service. A service manager may start it there (systemd: DelegateSubgroup). */
const LEAF = 'taskmill-service'

/**
 * The cgroup that the service may divide, when it is in `own`. That can be a leaf already: our own, or one into which a
 * service manager put us, below the delegated cgroup. The second kind is recognized by its lack of controllers. Once we
 * have enabled those above it, our own leaf beside it serves as the reminder. For root every cgroup is writable, so
 * only the name of our leaf counts.
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

/** Enables the controller in `directory` and in all cgroups between it and `top`, where it is enabled. */
export function enableDownTo(top: string, directory: string, controller: Controller): void {
  let group = top
  for (const name of relative(top, directory).split('/')) {
    group = join(group, name)
    enable(group, controller)
  }
}

/** Lets the children of a cgroup have the controller. */
export function enable(group: string, controller: Controller): void {
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
    if (systemCodeOf(error) !== 'ESRCH') throw error // it ended meanwhile
  }
}
