/**
 * `taskmill-runtime doctor`: tries each capability on this host and prints a remedy for each missing one.
 *
 * It takes the flags of serve that affect capabilities, and needs no running service. The exit code is 0 if every capability
 * is available and 1 if one is missing, so that scripts can use it.
 */
import { rmSync } from 'node:fs'
import type { DoctorReport } from '../../shared/contract/doctor-report.ts'
import { UsageError } from '../../shared/contract/errors.ts'
import { describeSettings, flag, readCommandLine, type SettingValues } from '../../shared/settings/flags.ts'
import { serveSettings, uidRange } from '../config.ts'
import { capabilitySet, namedCapabilities } from '../host/capabilities.ts'
import { findCapacity } from '../host/capacity.ts'
import { cgroupCapabilities } from '../host/cgroup-capabilities.ts'
import { ownDir, removeLeftDirs } from '../host/own-dirs.ts'
import { platformOf } from '../host/platform.ts'
import { SandboxUids } from '../host/sandbox-uids.ts'
import { userGroups } from '../host/service-user.ts'
import { chooseLauncher, type LauncherProgram, launcherHash } from '../launch/embedded.ts'
import { trySandbox } from '../launch/trial.ts'
import { portableLauncher } from '../portable/subcommand.ts'
import { escapeSettings } from './escape-settings.ts'
import { Interrupted, interruptible } from './interruption.ts'
import { ownCgroups } from './own-cgroups.ts'

const { cgroupRoot, disableCgroup, disableLinuxSandbox, sandboxUid, sandboxUids } = serveSettings
const { maxRunningTasks, capacityMemoryBytes, capacityPids } = serveSettings
const doctorSettings = {
  ...{ cgroupRoot, disableCgroup, disableLinuxSandbox, sandboxUid, sandboxUids },
  ...{ maxRunningTasks, capacityMemoryBytes, capacityPids },
  json: flag({ help: 'Print the report as one JSON object.' }),
  ...escapeSettings,
}

interface Doctored {
  readonly text: string
  readonly exitCode: number
}

/** Returns the report and the exit code. Throws `UsageError`. */
export async function doctor(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Doctored> {
  const { values, positionals, asked } = readCommandLine(argv, env, doctorSettings)
  if (asked !== undefined) return { text: help(), exitCode: 0 }
  if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}" (see doctor --help)`)
  if (values.json && values.escape) throw new UsageError('--json is not for doctor --escape')
  if (values.rootfs !== '' && !values.escape) throw new UsageError('--rootfs is for doctor --escape')
  try {
    return await interruptible(async (signal) => {
      if (!values.escape) return reported(await look(values, env, signal), values.json)
      const { doctorEscape } = await import('./escape.ts')
      return await doctorEscape(values, env, signal)
    })
  } catch (error) {
    if (error instanceof Interrupted) return { text: '', exitCode: error.exitCode }
    throw error
  }
}

const reported = (report: DoctorReport, isJson: boolean): Doctored => ({
  text: isJson ? JSON.stringify(report) : shown(report),
  exitCode: report.capabilities.every(({ available }) => available) ? 0 : 1,
})

async function look(
  values: SettingValues<typeof doctorSettings>,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<DoctorReport> {
  const { capacity, sources } = findCapacity(values)
  removeLeftDirs()
  await using cgroups = await ownCgroups('doctor', values)
  const isRoot = process.getuid?.() === 0
  const capabilities = await withLauncher(async (launcher) =>
    namedCapabilities(
      capabilitySet({
        ...{ isLauncherNative: launcher?.isNative === true, isRoot, own_groups: userGroups() },
        ...cgroupCapabilities(cgroups.tasks),
        ...(await trySandbox({
          ...{ launcher, isSandboxDisabled: values.disableLinuxSandbox, signal },
          sandboxUid: isRoot ? new SandboxUids(uidRange(values)).forTrial() : undefined,
        })),
      }),
    ),
  )
  return {
    platform: platformLine(env),
    launcher: launcherLine(),
    capacity: [
      `${capacity.task_slots} tasks (${sources.task_slots})`,
      amount(capacity.memory_bytes, 'bytes of memory', sources.memory_bytes),
      amount(capacity.pids, 'processes', sources.pids),
    ],
    capabilities: [
      { name: 'sandbox.profile=process', available: true },
      ...capabilities.map(([name, capability]) =>
        capability.isAvailable
          ? { name, available: true }
          : { name, available: false, reason: capability.reason, remedy: capability.remedy },
      ),
    ],
  }
}

const shown = ({ platform, launcher, capacity, capabilities }: DoctorReport): string =>
  [
    `platform: ${platform}`,
    `launcher: ${launcher}`,
    ...capacity.map((line) => `capacity: ${line}`),
    ...capabilities.map(({ name, available, reason, remedy }) =>
      available ? `ok       ${name}` : `MISSING  ${name}: ${reason}\n         ${remedy}`,
    ),
  ].join('\n')

function platformLine(env: Readonly<Record<string, string | undefined>>): string {
  const { os, arch, containerized, kubernetes } = platformOf(env)
  const where = kubernetes ? ', in Kubernetes' : containerized ? ', in a container' : ''
  return `${os} ${arch}${where}, as ${process.getuid?.() === 0 ? 'root' : `uid ${process.getuid?.()}`}`
}

function launcherLine(): string {
  const hash = launcherHash()
  return hash === undefined ? 'portable, as there is none for this platform' : `sha256 ${hash}`
}

const amount = (value: number | undefined, what: string, source: string | undefined): string =>
  value === undefined ? `${what} not known, so not limited together` : `${value} ${what} (${source})`

/** Unpacks the launcher into a temporary directory for `use`. Undefined if none runs on this platform. */
async function withLauncher<T>(use: (launcher: LauncherProgram | undefined) => Promise<T>): Promise<T> {
  const directory = ownDir('doctor')
  try {
    return await use(tryLauncher(directory))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function tryLauncher(directory: string): LauncherProgram | undefined {
  try {
    return chooseLauncher(directory, portableLauncher())
  } catch {
    return undefined
  }
}

const help = (): string => `taskmill-runtime doctor: shows what this host can enforce, and how to fix what it cannot.

Usage: taskmill-runtime doctor [flags]
       taskmill-runtime doctor --escape [--rootfs DIR] [flags]

It tries each capability on this host and needs no running service. Exit codes: 0 everything is available (with
--escape: every attempt is blocked), 1 something is missing or not blocked, 2 usage error.

Flags, most of them the same as those of serve:
${describeSettings(doctorSettings)}`
