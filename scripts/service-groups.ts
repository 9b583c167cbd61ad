/** The control groups of services that tests and the bench start, and kill. */
import { rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { CONTROLLERS, treeOf } from '../runtime/host/cgroup-files.ts'
import { ownCgroup } from '../runtime/host/own-cgroup.ts'
import { DEFAULT_CGROUP_ROOT } from '../runtime/host/task-cgroups.ts'
import { serviceIdOf } from '../shared/service-id.ts'

/** Of each hierarchy the groups below which services that we start make theirs, by default. */
export function homesOfServices(): string[][] {
  const homes = CONTROLLERS.flatMap((controller) => {
    const own = ownCgroup(controller)
    // In version 2 they may have to go one up (cgroup-v2.ts).
    return own === null ? [] : [own.directories.slice(0, own.version === 1 ? 1 : 2)]
  })
  return [...new Map(homes.map((directories) => [directories[0], directories])).values()]
}

/**
 * Removes, when it is called, what a service that was killed has left of its own: the empty group that keeps the place of
 * its tasks'. The directory has to be there now, not then.
 */
export function groupRemover(dataDir: string): () => void {
  const id = serviceIdOf(dataDir)
  return () => {
    for (const home of homesOfServices().flat()) {
      const directory = join(home, DEFAULT_CGROUP_ROOT)
      for (const group of [...treeOf(join(directory, id)), directory]) removeIfUnused(group)
    }
  }
}

function removeIfUnused(group: string): void {
  try {
    rmdirSync(group)
  } catch {
    // there is none, it is in use, or not ours to remove
  }
}
