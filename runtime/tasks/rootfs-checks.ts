/**
 * The checks of `sandbox.rootfs` when a task is submitted. The launcher checks again when the task starts.
 */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { isWithin } from '../../shared/files/is-within.ts'
import { shortened } from '../../shared/request/text.ts'
import type { PathInfo } from '../host/path-look.ts'
import { LOOK_TIMEOUT_MS, NoThread, type PathLooks, PathTimeout } from '../host/path-looks.ts'
import type { SandboxPaths } from '../host/sandbox-paths.ts'
import { invalidInput, Refusal } from '../refusal.ts'

/**
 * The real path of a `rootfs`. Throws 400 if it cannot be a root on this host, 503 if the service cannot look at it now.
 */
export async function realRootOf(looks: PathLooks, rootfs: string): Promise<string> {
  return directoryOf(rootfs, await lookAt(looks, rootfs))
}

/** Throws 400 where the path does not answer, 503 where it cannot be looked at now. */
async function lookAt(looks: PathLooks, rootfs: string): Promise<PathInfo> {
  try {
    return await looks.lookAt(rootfs)
  } catch (error) {
    if (error instanceof PathTimeout) {
      throw invalidInput(
        `sandbox.rootfs ${rootfs} did not answer within ${LOOK_TIMEOUT_MS} ms: its file system hangs (check its mount and what serves it, or put the root elsewhere)`,
      )
    }
    if (!(error instanceof NoThread)) throw error
    throw new Refusal(
      'unavailable',
      `cannot look at sandbox.rootfs ${rootfs}: ${error.message} (check their mounts, and try again)`,
    )
  }
}

/** Throws 400 for a path that cannot be a root on this host. */
function directoryOf(rootfs: string, look: PathInfo): string {
  if ('message' in look) {
    const reason = PATH_FAULTS[look.code ?? ''] ?? look.message
    throw invalidInput(`sandbox.rootfs ${shortened(rootfs)} cannot be used on this host: ${reason}`)
  }
  if (look.isThere && look.isDirectory) return look.realPath
  throw invalidInput(`sandbox.rootfs ${rootfs} is ${look.isThere ? 'no directory' : 'not there'} on this host`)
}

/** Throws 400 for a root in a part of the host that is hidden from tasks. */
export function checkRootIsShown(
  { effective_sandbox: { rootfs } }: ExecutionPlan,
  realPath: string,
  { masks, exposed }: SandboxPaths,
): void {
  if (rootfs === undefined) return
  const mask = masks.find((mask) => isWithin(realPath, mask))
  if (mask === undefined || exposed.some((path) => isWithin(realPath, path) && isWithin(path, mask))) return
  throw invalidInput(
    `sandbox.rootfs ${rootfs} lies in ${mask}, which is hidden from tasks (have it shown with --sandbox-expose, or put it elsewhere)`,
  )
}

const PATH_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'a part of its path is no directory',
  EACCES: 'the service may not pass a directory on its path (let its user pass, or put the root elsewhere)',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'a name in its path is too long',
}
