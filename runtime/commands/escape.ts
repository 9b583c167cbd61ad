/**
 * `taskmill-runtime doctor --escape`: tests the sandbox by trying to escape from it.
 *
 * Each attempt runs with the rights of a task in temporary sandboxes (escape.ts names them). The report has a line for each
 * attempt, and one on the network of the host. The exit code is 1 if an attempt is not blocked, or if no sandbox can be made.
 */
import { realpathSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { NAMESPACES } from '../../shared/contract/runtime-request.ts'
import type { SettingValues } from '../../shared/settings/flags.ts'
import { uidRange } from '../config.ts'
import type { Verdict } from '../escape/attempts.ts'
import { type Escapes, NoSandbox, tryToEscape } from '../escape/escape.ts'
import type { HostNetwork } from '../escape/host-network.ts'
import { ownDir } from '../host/own-dirs.ts'
import { findSandboxPaths } from '../host/sandbox-paths.ts'
import { SandboxUids } from '../host/sandbox-uids.ts'
import { chooseLauncher, type LauncherProgram } from '../launch/embedded.ts'
import type { SandboxCapabilities } from '../launch/sandbox-capabilities.ts'
import { trySandbox } from '../launch/trial.ts'
import type { SandboxFeature } from '../plan/isolation.ts'
import { portableLauncher } from '../portable/subcommand.ts'
import type { escapeSettings } from './escape-settings.ts'
import { type CgroupSettings, ownCgroups } from './own-cgroups.ts'

/** Size of the file system that the launcher makes for /tmp and /dev/shm together. */
const MEMORY_FILES_BYTES = 512 * 1024 * 1024

export type EscapeValues = SettingValues<typeof escapeSettings> &
  CgroupSettings & { readonly disableLinuxSandbox: boolean }

/** Returns the report and the exit code. Throws `UsageError`, and the abort reason of `signal`. */
export async function doctorEscape(
  values: EscapeValues,
  { HOME }: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly exitCode: 0 | 1 }> {
  const home = ownDir('doctor')
  try {
    const launcher = launcherIn(home)
    const secretsDir = join(home, 'secrets')
    const uid = process.getuid?.() === 0 ? new SandboxUids(uidRange(values)).forTrial() : undefined
    const isSandboxDisabled = values.disableLinuxSandbox
    const sandbox = {
      features: featuresOf(await trySandbox({ launcher, sandboxUid: uid, isSandboxDisabled, signal })),
      ...(uid !== undefined && { uid }),
      ...(values.rootfs !== '' && { rootfs: directoryAt(values.rootfs) }),
      ...findSandboxPaths({ ...values, dataDir: home, secretsDir }),
    }
    await using cgroups = await ownCgroups('escape', values)
    const escapes = await tryToEscape({
      ...{ launcher, sandbox, secretsDir, signal },
      groupOf: (name) => cgroups.tasks?.forTask(name),
      // Where the token of a service lies.
      hiddenDirectories: HOME === undefined ? [home] : [HOME, home],
      memoryFilesBytes: MEMORY_FILES_BYTES,
    })
    const isOpen = escapes.attempts.some(({ verdict }) => verdict === 'open')
    return { text: report(escapes), exitCode: isOpen ? 1 : 0 }
  } catch (error) {
    if (!(error instanceof NoSandbox)) throw error
    return { text: `NOT BLOCKED  there is no sandbox to escape from: ${error.message}`, exitCode: 1 }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

function launcherIn(home: string): LauncherProgram {
  try {
    return chooseLauncher(home, portableLauncher())
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

function directoryAt(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`--rootfs: ${path} is no directory`)
  return realpathSync(path)
}

/** All features that this host allows. Attempts that a missing feature would block are reported as not blocked. */
function featuresOf({ linux_sandbox, namespaces, seccomp }: SandboxCapabilities): SandboxFeature[] {
  if (!linux_sandbox.isAvailable) throw new NoSandbox(`${linux_sandbox.reason} (${linux_sandbox.remedy})`)
  const allowed = NAMESPACES.filter((name) => namespaces[name].isAvailable)
  return [...allowed, ...(seccomp.isAvailable ? (['seccomp'] as const) : [])]
}

const WORDS: Readonly<Record<Verdict, string>> = {
  blocked: 'blocked    ',
  open: 'NOT BLOCKED',
  not_applicable: 'n/a        ',
}

function report({ attempts, hostNetwork }: Escapes): string {
  const count = (verdict: Verdict) => attempts.filter((attempt) => attempt.verdict === verdict).length
  const width = Math.max(...attempts.map(({ name }) => name.length))
  const lines = attempts.map(({ name, verdict, detail }) => `${WORDS[verdict]}  ${name.padEnd(width)}  ${detail}`)
  const sum = `${count('blocked')} blocked, ${count('open')} NOT BLOCKED, ${count('not_applicable')} do not apply`
  return [...lines, ofHostNetwork(hostNetwork), sum].join('\n')
}

/** Says of the tasks with the network of the host what their choice lets through, which counts as nothing. */
const ofHostNetwork = (network: HostNetwork): string =>
  'has' in network
    ? `by choice    a task with "network": "host" has these, which do not count: ${network.has.join(', ')}`
    : `not tried    "network": "host": ${network.notTried}`
