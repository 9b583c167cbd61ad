/** Cgroups of the services that tests and the bench start and kill. */
import { rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { CONTROLLERS, treeOf } from '../runtime/host/cgroup-files.ts'
import { ownCgroup } from '../runtime/host/own-cgroup.ts'
import { DEFAULT_CGROUP_ROOT } from '../runtime/host/task-cgroups.ts'
import { serviceIdOf } from '../shared/process/service-id.ts'

/** For each hierarchy: the cgroups below which our services create theirs by default. */
export function homesOfServices(): string[][] {
  const homes = CONTROLLERS.flatMap((controller) => {
    const own = ownCgroup(controller)
    // With cgroup v2 a service may have to use the parent of its own cgroup (cgroup-v2.ts).
    return own === null ? [] : [own.directories.slice(0, own.version === 1 ? 1 : 2)]
  })
  return [...new Map(homes.map((directories) => [directories[0], directories])).values()]
}

/**
 * Returns a function that removes the empty cgroups of a killed service. The data directory must exist when this is called,
 * but not when the returned function is.
 */
export function cgroupRemover(dataDir: string): () => void {
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
    // it does not exist, is in use, or belongs to another user
  }
}
