/**
 * `taskmill down`: ends the services that `taskmill up` started, and no other process.
 *
 * Control ends the runtime service. If control was killed, its runtime service runs on; it is found by the record that
 * control wrote of it. Signals go through a pidfd, after a check that the process is still the one in the record.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import { signalIf } from '../../shared/process/pidfd.ts'
import { isProcessIdentity, isStillThere, type ProcessIdentity } from '../../shared/process/processes.ts'
import { formatDuration } from '../../shared/settings/duration.ts'
import { jsonOrUndefined } from '../../shared/text/json.ts'
import { isRunning, ownPaths, type ServicesRecord } from '../own-services/record.ts'
import type { Environment } from '../own-services/state-dir.ts'

/** Milliseconds for running attempts, and the end of both services: more than their own limits add up to. */
export const END_WITHIN_MS = 60_000

/** Milliseconds after the second signal, which ends the attempts. */
const HURRIED_END_MS = 20_000

/** Milliseconds for the runtime service if control cannot end it. Its tasks run on, so it has nothing to wait for. */
const RUNTIME_END_MS = 10_000

const PAUSES = { firstMs: 5, longestMs: 100 }

/**
 * Returns once both services have ended. After `timeoutMs` control gets a second signal, with which it stops waiting for
 * running attempts. Throws if a service does not end; nothing is killed.
 */
export async function endServices(
  { pid, ...record }: Pick<ServicesRecord, 'pid' | 'process'>,
  env: Environment,
  timeoutMs = END_WITHIN_MS,
): Promise<void> {
  const isThere = () => isRunning({ pid, ...record }, env)
  if (!(await ends(isThere, pid, timeoutMs)) && !(await ends(isThere, pid, HURRIED_END_MS))) {
    throw new Error(
      `the control service (pid ${pid}) did not end within ${formatDuration(timeoutMs + HURRIED_END_MS)}: see ${ownPaths(env).log}, or kill it`,
    )
  }
  const left = leftRuntime(env)
  if (left === undefined || (await ends(() => isStillThere(left), left.pid, RUNTIME_END_MS))) return
  throw new Error(`the runtime service (pid ${left.pid}) did not end within ${formatDuration(RUNTIME_END_MS)}: kill it`)
}

/** The runtime service of a control service that was killed. Undefined if none runs. */
export function leftRuntime(env: Environment): ProcessIdentity | undefined {
  const identity = readIdentity(join(ownPaths(env).data, 'runtime-child.json'))
  return identity !== undefined && isStillThere(identity) ? identity : undefined
}

function readIdentity(path: string): ProcessIdentity | undefined {
  try {
    const value = jsonOrUndefined(readFileSync(path, 'utf8'))
    return isProcessIdentity(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Asks a process to end, and waits. Whether it has ended. */
async function ends(isThere: () => boolean, pid: number, timeoutMs: number): Promise<boolean> {
  signalIf(isThere, pid, 'SIGTERM')
  const pauses = new GrowingPause(PAUSES)
  const deadline = performance.now() + timeoutMs
  while (isThere()) {
    if (performance.now() >= deadline) return false
    await Bun.sleep(pauses.next())
  }
  return true
}
