/**
 * Control groups that the tests have left behind.
 *
 * A service makes its groups below the group that it was started in, and that is not the tests' alone: a service that a
 * developer has beside them may be there, or another run of the tests. So a new group says little. But a group's name
 * tells whose it is. Those of a service begin with the number of its data directory, which is in use for as long as
 * somebody has its lock open: the service, or what has outlived it. Those of a command or a test end with its pid. What
 * is nobody's, and is not taken up or removed within a moment either, was left.
 *
 * By us, if it is in every hierarchy. In version 1 another session may share one with us and have another for itself;
 * what somebody kills there, or a run of the tests leaves, is seen here in the first only.
 */
import { readdirSync, readlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { membersOf, namesBelow, treeOf } from '../runtime/host/cgroup-files.ts'
import { DEFAULT_CGROUP_ROOT } from '../runtime/host/task-cgroups.ts'
import { LOCK_FILES } from '../shared/directory-lock.ts'
import { allPids } from '../shared/processes.ts'
import { serviceIdOf } from '../shared/service-id.ts'
import { homesOfServices } from './service-groups.ts'

/** What tests that make groups without a service call theirs begins with this, and ends with their pid. */
export const TEST_CGROUP_ROOT = `${DEFAULT_CGROUP_ROOT}-test`

/** Milliseconds that a group may be nobody's, as between the kill and the next start of a service; and between looks. */
const MOMENT_MS = 3_000
const LOOK_MS = 100

/** All that services and tests have made there. */
export const controlGroups = (): string[] =>
  homesOfServices()
    .flat()
    .flatMap((home) =>
      namesBelow(home)
        .filter((name) => name === DEFAULT_CGROUP_ROOT || name.startsWith(TEST_CGROUP_ROOT))
        .flatMap((name) => treeOf(join(home, name))),
    )

/** Those of us that were not there before, once they have been nobody's for a moment. */
export async function leftGroups(before: ReadonlySet<string>): Promise<string[]> {
  const look = () => inEvery(homesOfServices(), groupsOfNobody().difference(before))
  let left = look()
  for (let waitedMs = 0; left.size > 0 && waitedMs < MOMENT_MS; waitedMs += LOOK_MS) {
    await Bun.sleep(LOOK_MS)
    left = left.intersection(look())
  }
  return [...left]
}

/** The groups that have their like in every hierarchy. Pure. */
export function inEvery(hierarchies: readonly (readonly string[])[], groups: ReadonlySet<string>): Set<string> {
  const isEverywhere = (name: string) =>
    hierarchies.every((homes) => homes.some((home) => groups.has(join(home, name))))
  const homesOf = (group: string) => hierarchies.flat().filter((home) => isIn(home, group))
  return new Set([...groups].filter((group) => homesOf(group).some((home) => isEverywhere(relative(home, group)))))
}

export function groupsOfNobody(): Set<string> {
  const groups = controlGroups()
  const [services, pids] = [runningServices(), new Set(allPids())]
  const used = groups.filter((group) => {
    const [service] = basename(group).split('.') as [string]
    const [, pid] = /^[a-z].*-(\d+)$/.exec(basename(group)) ?? []
    return services.has(service) || pids.has(Number(pid)) || membersOf(group).length > 0
  })
  return without(groups, used)
}

/** The groups that are not among `used`, nor above or below one of those. Pure. */
export const without = (groups: readonly string[], used: readonly string[]): Set<string> =>
  new Set(groups.filter((group) => !used.some((one) => isIn(one, group) || isIn(group, one))))

const isIn = (top: string, group: string): boolean => group === top || group.startsWith(`${top}/`)

/** Ids of the services whose lock somebody has open. */
function runningServices(): Set<string> {
  const locks = new Set(allPids().flatMap(openFilesOf))
  return new Set([...locks].filter((path) => basename(path) === LOCK_FILES.runtime).flatMap(serviceOf))
}

function serviceOf(lock: string): string[] {
  try {
    return [serviceIdOf(dirname(lock))]
  } catch {
    return [] // the directory is gone, and its name with it
  }
}

function openFilesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => linkOf(`/proc/${pid}/fd/${fd}`))
  } catch {
    return [] // it has ended, or is not ours to look at
  }
}

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    return [] // just closed
  }
}
