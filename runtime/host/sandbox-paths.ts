/**
 * The parts of this host that tasks in a sandbox do not see, and those that they see after all.
 *
 * They are looked up once: places where sockets, keys and other tasks' files lie. A read-only view does not keep anybody
 * from connecting to a socket.
 */
import { realpathSync } from 'node:fs'

/** On any host. /tmp is not among them: each task has its own. */
export const DEFAULT_MASKS = ['/run', '/home', '/root', '/var/tmp'] as const

/** Often a link into /run: without it no name of another host can be looked up. */
const RESOLVER = '/etc/resolv.conf'

export interface SandboxPaths {
  /** Real paths, where there is something. */
  readonly masks: readonly string[]
  readonly exposed: readonly string[]
}

export interface SandboxPathSettings {
  /** Absolute and real. */
  readonly dataDir: string
  readonly sandboxMask: readonly string[]
  readonly sandboxExpose: readonly string[]
}

export function findSandboxPaths({ dataDir, sandboxMask, sandboxExpose }: SandboxPathSettings): SandboxPaths {
  const resolver = realPath(RESOLVER)
  return {
    masks: distinct([...DEFAULT_MASKS, dataDir, ...sandboxMask].map(realPath)),
    exposed: distinct([...sandboxExpose.map(realPath), ...(resolver === RESOLVER ? [] : [resolver])]),
  }
}

const distinct = (paths: readonly string[]): string[] => [...new Set(paths)]

/** One that is not there may come. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
