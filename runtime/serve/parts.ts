/** The parts of the service, built on its foundation: tasks, callers, HTTP. `serve.ts` starts and stops them. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { AnyElysia } from 'elysia'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { CAPABILITY_SNAPSHOT_VERSION } from '../../shared/contract/runtime-info.ts'
import { isOpen } from '../../shared/http/service-access.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import { VERSION } from '../../shared/process/version.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { CertificateAuthority } from '../egress/authority.ts'
import { Dialer } from '../egress/dial.ts'
import { Egress } from '../egress/egress.ts'
import { ServiceAddresses } from '../egress/service-addresses.ts'
import { MAX_ENTRY_BYTES } from '../files/bundle.ts'
import { SpareDirs } from '../files/spare-dirs.ts'
import { StagedFiles } from '../files/staged-files.ts'
import { capabilityManifest } from '../host/capabilities.ts'
import { findCapacity, maxDescriptors } from '../host/capacity.ts'
import { PathLooks } from '../host/path-looks.ts'
import { platformOf } from '../host/platform.ts'
import { serviceUser } from '../host/service-user.ts'
import { startThread } from '../host/threads.ts'
import { runtimeApp } from '../http/app.ts'
import { configSummary } from '../http/info.ts'
import { Complaints } from '../launch/complaints.ts'
import { ForkServer } from '../launch/fork-server.ts'
import type { LauncherHost } from '../launch/launcher-host.ts'
import { NotifyPipe } from '../launch/notify.ts'
import { Ledger } from '../ledger/ledger.ts'
import { ChildLaunchers } from '../portable/child-launchers.ts'
import type { LiveTask } from '../store/live-task.ts'
import { Readiness } from '../store/readiness.ts'
import { Secrets } from '../store/secrets.ts'
import { Bundles } from '../tasks/bundles.ts'
import { Discards } from '../tasks/discards.ts'
import { Dispatcher } from '../tasks/dispatcher.ts'
import { Ends } from '../tasks/end.ts'
import { FileHolds } from '../tasks/file-holds.ts'
import { InFlight } from '../tasks/flight.ts'
import { Force } from '../tasks/force.ts'
import { Inputs, stagedForTasks } from '../tasks/inputs.ts'
import { Kills } from '../tasks/kill.ts'
import { LateSubmissions } from '../tasks/late-submissions.ts'
import { baseEnvironment, type LaunchSettings } from '../tasks/launch-plan.ts'
import { LauncherRecords } from '../tasks/launcher-records.ts'
import { Networks } from '../tasks/networks.ts'
import { Outputs } from '../tasks/outputs.ts'
import { ResultFiles } from '../tasks/result-files.ts'
import { Retention } from '../tasks/retention.ts'
import { SandboxUsers } from '../tasks/sandbox-users.ts'
import { Submissions } from '../tasks/submit.ts'
import { Totals } from '../tasks/totals.ts'
import { WaitingQueue } from '../tasks/waiting-queue.ts'
import { authorityDir, type Foundation } from './foundation.ts'

/** All that runs tasks. */
export type Tasks = ReturnType<typeof buildTaskParts>

/** Each part gets those that were built before it. */
export function buildTaskParts(foundation: Foundation) {
  const { config, data, storage, cgroups, capabilities, log } = foundation
  const { path: dataDir } = data
  const { store, commit, directory } = storage
  const users = foundation.trial.uids && new SandboxUsers(foundation.trial.uids, log)
  const ledger = new Ledger(findCapacity(config).capacity, config.tenantQuota, () => users?.hasFree ?? true)
  const complaints = ofDataDir(() => new Complaints(join(dataDir, 'launchers.log')))
  const inFlight = new InFlight()
  const notifications = ofDataDir(() => new NotifyPipe(join(dataDir, 'launchers'), (event) => inFlight.heard(event)))
  const services = serviceAddresses(foundation)
  const authority = new CertificateAuthority(authorityDir(config, dataDir))
  const bundleBytes = config.maxInputBytes + config.maxInputFiles * MAX_ENTRY_BYTES
  const base = {
    ...{ config, dataDir, store, commit, directory, cgroups, capabilities, users, ledger, inFlight, log },
    settings: launchSettings(foundation),
    queue: new WaitingQueue<LiveTask>(ledger),
    launchers: launcherHost(foundation, inFlight, { notifyFd: notifications.fd, complaintsFd: complaints.fd }),
    ...{ authority, egress: egressOf(foundation, services, authority) },
    secrets: new Secrets(foundation.secrets),
    staged: new StagedFiles({
      ...{ dataDir, directory, needed: () => stagedForTasks(store.live) },
      limits: { bundle: bundleBytes, all: config.maxStagedBytes },
    }),
    spares: new SpareDirs(dataDir),
    records: new LauncherRecords(dataDir),
    results: new ResultFiles(dataDir, log),
    holds: new FileHolds(),
    totals: new Totals(),
  }
  const networks = new Networks(base)
  const force = new Force(base, serviceIdOf(dataDir))
  const ends = new Ends({ ...base, networks, force })
  const discards = new Discards(base)
  const inputs = new Inputs({ ...base, discards })
  const outputs = new Outputs({ ...base, discards })
  const dispatcher = new Dispatcher({ ...base, networks, force, ends, inputs, outputs })
  const kills = new Kills({ ...base, dispatcher })
  return { ...base, complaints, services, networks, ends, inputs, dispatcher, kills, bundles: new Bundles(base) }
}

/** Descriptors that the service keeps for itself, and those of a connection through it. */
const OWN_DESCRIPTORS = 512
const DESCRIPTORS_OF_CONNECTION = 2

function egressOf(
  { config, data, log }: Foundation,
  services: ServiceAddresses,
  authority: CertificateAuthority,
): Egress {
  const most = Math.floor((maxDescriptors() - OWN_DESCRIPTORS) / DESCRIPTORS_OF_CONNECTION)
  return new Egress({
    directory: join(data.path, 'egress'),
    bounds: { allow: config.egressAllow, deny: config.egressDeny ?? [] },
    maxConnections: Math.max(0, Math.min(config.maxEgressConnections, most)),
    maxTasks: config.maxRunningTasks,
    ...{ services, authority, dialer: new Dialer() },
    onFault: (task_id, error) =>
      log.error('a connection of a task could not be served', { task_id, cause: messageOf(error) }),
    onUseFault: (task_id, error) =>
      log.warn('cannot keep what a task uses of its network', { task_id, cause: messageOf(error) }),
  })
}

function serviceAddresses({ config, server }: Foundation): ServiceAddresses {
  const services = new ServiceAddresses()
  if (server.port !== undefined) services.addPort(server.port)
  for (const address of config.controlAddr) services.add(address)
  return services
}

function launchSettings({ config, env, trial, capabilities }: Foundation): LaunchSettings {
  return {
    graceMs: config.terminationGraceMs,
    maxOutputBytes: config.maxOutputBytes,
    baseEnvironment: baseEnvironment(env, serviceUser(process.getuid?.())),
    sandbox: { capabilities, ...trial.paths },
  }
}

/**
 * Opens a file of ours in the data directory. Throws `UsageError`: something else of that name is not ours to remove.
 */
function ofDataDir<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw new UsageError(`${messageOf(error)} (move it away, or choose another --data-dir)`)
  }
}

function launcherHost(
  { trial: { launcher }, data, env, log }: Foundation,
  inFlight: InFlight,
  descriptors: { readonly notifyFd: number; readonly complaintsFd: number },
): LauncherHost {
  if (!launcher.isNative) return new ChildLaunchers({ program: launcher, ...descriptors })
  const surroundings = { program: launcher.command[0], ...descriptors, directoryLockFd: data.lockFd, env }
  return new ForkServer(surroundings, log, () => inFlight.serverEnded())
}

/** The parts that serve the requests of callers. */
export type CallerParts = ReturnType<typeof buildCallerParts>

export function buildCallerParts({ config, access }: Foundation, tasks: Tasks) {
  const readiness = new Readiness(tasks.commit, tasks.directory, tasks.dataDir)
  const late = new LateSubmissions()
  const submissions = new Submissions({
    ...{ ...tasks, late, readiness },
    looks: new PathLooks(() => startThread('look')),
    planSettings: {
      capability_mode: config.defaultCapabilityMode,
      network: config.defaultNetwork,
      default_limits: {
        pids_max: config.sandboxPidsMax === 0 ? undefined : config.sandboxPidsMax,
        disk_bytes: config.taskDiskBytes === 0 ? undefined : config.taskDiskBytes,
      },
      access: {
        ...{ runtime: isOpen(access) ? 'open' : 'token', control: config.controlAccess },
        isTokenFilePublic: access.isTokenPublic,
      },
    },
  })
  return { readiness, late, submissions, retention: new Retention(tasks) }
}

export function buildApp(
  { config, env, access, cgroups, capabilities }: Foundation,
  tasks: Tasks,
  callers: CallerParts,
  startedAt: number,
): AnyElysia {
  const { dataDir, store, ledger, queue } = tasks
  const runtimeId = config.runtimeId === '' ? hostname() : config.runtimeId
  const platform = platformOf(env)
  return runtimeApp({
    ...{ ...tasks, ...callers, guard: access.guard, tokens: access.tokens },
    maxBodyBytes: config.maxBodyBytes,
    unknownFields: config.unknownFields,
    info: {
      runtime_id: runtimeId,
      version: VERSION,
      started_at: isoTime(startedAt),
      snapshot_version: CAPABILITY_SNAPSHOT_VERSION,
      platform,
    },
    capabilities: capabilityManifest(capabilities, {
      ...{ runtimeId, platform, capacity: ledger.capacity },
      collectedAt: startedAt,
      isSandboxDisabled: config.disableLinuxSandbox,
      isCgroupDisabled: config.disableCgroup,
    }),
    config: configSummary(config, {
      ...{ runtimeId, dataDir },
      cgroupRoot: cgroups?.directories.pids ?? cgroups?.directories.memory ?? '',
    }),
    resources: () => ledger.snapshot(runtimeId, queue.length, (id) => store.get(id)?.status ?? 'accepted'),
  })
}
