/**
 * Finds cgroups that the tests have left behind.
 *
 * A service creates its cgroups below the cgroup that it was started in. Other services or another test run may share that
 * parent, so a new cgroup is not necessarily ours. The name of a cgroup tells its owner. The name begins with the service id
 * if a service made it: that cgroup is in use while a process has the lock of the data directory open. The name ends with
 * a pid if a command or a test made it. A cgroup is left behind if it has no live owner and nobody reuses or removes it within
 * `MOMENT_MS`.
 *
 * Only a cgroup that exists in every hierarchy counts. With cgroup v1, another session may share one hierarchy with us and
 * have its own cgroup in another. What that session leaves behind appears here in the shared hierarchy only.
 */
import { readdirSync, readlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { membersOf, namesBelow, treeOf } from '../runtime/host/cgroup-files.ts'
import { DEFAULT_CGROUP_ROOT } from '../runtime/host/task-cgroups.ts'
import { LOCK_FILES } from '../shared/files/directory-lock.ts'
import { allPids } from '../shared/process/processes.ts'
import { serviceIdOf } from '../shared/process/service-id.ts'
import { homesOfServices } from './service-cgroups.ts'

/** Name prefix of cgroups that tests make without a service. Their names end with the pid of the test. */
export const TEST_CGROUP_ROOT = `${DEFAULT_CGROUP_ROOT}-test`

/** Milliseconds that a cgroup may have no owner, as between the kill and the next start of a service; poll interval. */
const MOMENT_MS = 10_000
const LOOK_MS = 100

/** All cgroups of services and tests. */
export const allCgroups = (): string[] =>
  homesOfServices()
    .flat()
    .flatMap((home) =>
      namesBelow(home)
        .filter((name) => name === DEFAULT_CGROUP_ROOT || name.startsWith(TEST_CGROUP_ROOT))
        .flatMap((name) => treeOf(join(home, name))),
    )

/** New cgroups of this run that have had no owner for `MOMENT_MS`. */
export async function leftCgroups(before: ReadonlySet<string>): Promise<string[]> {
  const look = () => inEvery(homesOfServices(), ownerlessCgroups().difference(before))
  let left = look()
  for (let waitedMs = 0; left.size > 0 && waitedMs < MOMENT_MS; waitedMs += LOOK_MS) {
    await Bun.sleep(LOOK_MS)
    left = left.intersection(look())
  }
  return [...left]
}

/** The cgroups that exist in every hierarchy. Pure. */
export function inEvery(hierarchies: readonly (readonly string[])[], groups: ReadonlySet<string>): Set<string> {
  const isEverywhere = (name: string) =>
    hierarchies.every((homes) => homes.some((home) => groups.has(join(home, name))))
  const homesOf = (group: string) => hierarchies.flat().filter((home) => isIn(home, group))
  return new Set([...groups].filter((group) => homesOf(group).some((home) => isEverywhere(relative(home, group)))))
}

export function ownerlessCgroups(): Set<string> {
  const groups = allCgroups()
  const [services, pids] = [runningServices(), new Set(allPids())]
  const used = groups.filter((group) => {
    const [service] = basename(group).split('.') as [string]
    const [, pid] = /^[a-z].*-(\d+)$/.exec(basename(group)) ?? []
    return services.has(service) || pids.has(Number(pid)) || membersOf(group).length > 0
  })
  return without(groups, used)
}

/** The cgroups that are not in `used` and are no ancestor or descendant of one in `used`. Pure. */
export const without = (groups: readonly string[], used: readonly string[]): Set<string> =>
  new Set(groups.filter((group) => !used.some((one) => isIn(one, group) || isIn(group, one))))

const isIn = (top: string, group: string): boolean => group === top || group.startsWith(`${top}/`)

/** Ids of the services whose lock file a process has open. */
function runningServices(): Set<string> {
  const locks = new Set(allPids().flatMap(openFilesOf))
  return new Set([...locks].filter((path) => basename(path) === LOCK_FILES.runtime).flatMap(serviceOf))
}

function serviceOf(lock: string): string[] {
  try {
    return [serviceIdOf(dirname(lock))]
  } catch {
    return [] // the data directory was removed
  }
}

function openFilesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => linkOf(`/proc/${pid}/fd/${fd}`))
  } catch {
    return [] // the process has ended or belongs to another user
  }
}

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    return [] // closed since readdir
  }
}
