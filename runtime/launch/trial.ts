/** Tries which sandboxes work on this host. Returns values for plans. Used by the service and by doctor. */
import type { LauncherProgram } from './embedded.ts'
import { type SandboxCapabilities, sandboxCapabilities } from './sandbox-capabilities.ts'
import { probeSandbox } from './sandbox-probe.ts'

interface SandboxTrial {
  /** Undefined where none can run. */
  readonly launcher: LauncherProgram | undefined
  /** The user of sandboxes, if the service is root. */
  readonly sandboxUid: number | undefined
  readonly isSandboxDisabled: boolean
  /** Ends the trial early. */
  readonly signal?: AbortSignal
}

/** Needs a process and takes time. A start does other work meanwhile. */
export async function trySandbox({
  launcher,
  sandboxUid,
  isSandboxDisabled,
  signal,
}: SandboxTrial): Promise<SandboxCapabilities> {
  const asked = launcher?.isNative === true && !isSandboxDisabled ? launcher : undefined
  return sandboxCapabilities({
    isLauncherNative: launcher?.isNative === true,
    isDisabled: isSandboxDisabled,
    isRoot: sandboxUid !== undefined,
    probe: asked && (await probeSandbox(asked, sandboxUid, signal)),
  })
}
