/**
 * The parts of the host that are hidden from tasks in a sandbox, and those shown again.
 *
 * Determined once. Hidden are the places of sockets, keys and the files of other tasks: a read-only view does not
 * prevent a task from connecting to a socket.
 */
import { realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { UsageError } from '../../shared/contract/errors.ts'
import { isWithin } from '../../shared/files/is-within.ts'

/** On any host. /tmp is missing here because each task has its own. */
export const DEFAULT_MASKS = ['/run', '/home', '/root', '/var/tmp'] as const

/** Often a link into /run. Without it no host name can be resolved. */
const RESOLVER = '/etc/resolv.conf'

/**
 * Most places that are hidden or shown, so that the list of mounts fits into the launcher (MAX_MOUNTS of mount-list.h).
 */
export const MAX_SANDBOX_PATHS = 128

/** The paths that each task has of its own, and the file with which the launcher forbids further user namespaces. */
const INDISPENSABLE = ['/dev', '/proc', '/proc/sys/user/max_user_namespaces']

export interface SandboxPaths {
  /** Real paths that exist. */
  readonly masks: readonly string[]
  readonly exposed: readonly string[]
}

export interface SandboxPathSettings {
  /** Absolute and real. */
  readonly dataDir: string
  /** Empty where there is none. */
  readonly tokenFile?: string
  /** Empty where there is none. */
  readonly secretsDir?: string
  /** Empty where there is none. */
  readonly egressCa?: string
  readonly sandboxMask: readonly string[]
  readonly sandboxExpose: readonly string[]
}

/** Throws `UsageError` for paths that would make every sandbox fail. */
export function findSandboxPaths({
  dataDir,
  tokenFile = '',
  secretsDir = '',
  egressCa = '',
  sandboxMask,
  sandboxExpose,
}: SandboxPathSettings): SandboxPaths {
  for (const path of sandboxMask) checkMask(path, realPath(path))
  for (const path of sandboxExpose) checkExposed(path, realPath(path))
  const resolver = realPath(RESOLVER)
  return {
    masks: counted(
      '--sandbox-mask',
      [
        ...[...DEFAULT_MASKS, ownPlace(dataDir)],
        ...[tokenFile, secretsDir, egressCa].flatMap(ownMask),
        ...sandboxMask,
      ].map(realPath),
    ),
    exposed: counted('--sandbox-expose', [
      ...sandboxExpose.map(realPath),
      ...(resolver === RESOLVER ? [] : [resolver]),
    ]),
  }
}

/**
 * The data directory, or the outermost directory above it that no other user may enter: a task of a root service has a user
 * of its own, which could not enter that to reach its workspace. The task sees an empty directory in its place.
 */
function ownPlace(dataDir: string): string {
  let place = dataDir
  if (process.getuid?.() !== 0 || OF_EACH_TASK.some((place) => isWithin(dataDir, place))) return place
  for (let above = dirname(dataDir); above !== '/'; above = dirname(above)) {
    if ((statSync(above).mode & 0o001) === 0) place = above
  }
  return place
}

/** Each task has these of its own, with the directories that lead to its workspace. */
const OF_EACH_TASK = ['/tmp', ...DEFAULT_MASKS]

/**
 * The token file or the secrets of the service: a task that runs as the user of the service could read them, and with
 * the token run tasks without a sandbox. A path below /dev or /proc (`/dev/fd/3`, /dev/shm) needs no mask: each sandbox
 * has its own.
 */
function ownMask(path: string): string[] {
  return path === '' || /^\/(dev|proc)\//.test(resolve(path)) ? [] : [resolve(path)]
}

function checkMask(path: string, real: string): void {
  const needed = INDISPENSABLE.find((one) => `${one}/`.startsWith(real === '/' ? real : `${real}/`))
  if (needed !== undefined) {
    throw new UsageError(
      `--sandbox-mask ${path}: no sandbox can be made without ${needed} (name single parts that are to be hidden)`,
    )
  }
  // A link such as /proc/mounts leads to the service itself, which no task sees.
  if (/^\/proc\/\d+(\/|$)/.test(real)) {
    throw new UsageError(`--sandbox-mask ${path}: what /proc has of a process cannot be hidden from that process`)
  }
}

function checkExposed(path: string, real: string): void {
  if (real === '/dev') {
    throw new UsageError(
      `--sandbox-expose ${path}: tasks have a /dev of their own (name what they are to see of that of the host)`,
    )
  }
}

function counted(flag: string, paths: readonly string[]): string[] {
  const found = distinct(paths)
  if (found.length <= MAX_SANDBOX_PATHS) return found
  throw new UsageError(
    `${flag}: ${found.length} places, with those that are always among them (at most ${MAX_SANDBOX_PATHS}: name directories that hold several)`,
  )
}

const distinct = (paths: readonly string[]): string[] => [...new Set(paths)]

/** A missing path may be created later. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
