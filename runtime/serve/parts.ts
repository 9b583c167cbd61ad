/** The parts of the service, built on its foundation: tasks, callers, HTTP. `serve.ts` starts and stops them. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { AnyElysia } from 'elysia'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { CAPABILITY_SNAPSHOT_VERSION } from '../../shared/contract/runtime-info.ts'
import { bootId } from '../../shared/process/processes.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import { VERSION } from '../../shared/process/version.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { Dialer } from '../egress/dial.ts'
import { Egress } from '../egress/egress.ts'
import { ServiceAddresses } from '../egress/service-addresses.ts'
import { MAX_ENTRY_BYTES } from '../files/bundle.ts'
import { StagedFiles } from '../files/staged-files.ts'
import { capabilityManifest } from '../host/capabilities.ts'
import { findCapacity } from '../host/capacity.ts'
import { maxDescriptors } from '../host/descriptors.ts'
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
import { resourcesSnapshot } from '../ledger/snapshot.ts'
import { ChildLaunchers } from '../portable/child-launchers.ts'
import type { LiveTask } from '../store/live-task.ts'
import { Readiness } from '../store/readiness.ts'
import { Secrets } from '../store/secrets.ts'
import { SpareDirs } from '../store/spare-dirs.ts'
import { Bundles } from '../tasks/bundles.ts'
import { Discards } from '../tasks/discards.ts'
import { Dispatcher } from '../tasks/dispatcher.ts'
import { Ends } from '../tasks/end.ts'
import { FileHolds } from '../tasks/file-holds.ts'
import { InFlight } from '../tasks/flight.ts'
import { Force } from '../tasks/force.ts'
import { Inputs } from '../tasks/inputs.ts'
import { KillSender, Kills } from '../tasks/kill.ts'
import { LateSubmissions } from '../tasks/late-submissions.ts'
import { baseEnvironment, type LaunchSettings } from '../tasks/launch-plan.ts'
import { LauncherRecords } from '../tasks/launcher-records.ts'
import { Networks } from '../tasks/networks.ts'
import { Outputs } from '../tasks/outputs.ts'
import { ResultFiles } from '../tasks/result-files.ts'
import { Retention } from '../tasks/retention.ts'
import { SandboxUsers } from '../tasks/sandbox-users.ts'
import { StagedRetention, stagedForTasks } from '../tasks/staged-retention.ts'
import { Starts } from '../tasks/start.ts'
import { Submissions } from '../tasks/submit.ts'
import { Totals } from '../tasks/totals.ts'
import { WaitingQueue } from '../tasks/waiting-queue.ts'
import type { Foundation } from './foundation.ts'

/** The way of a task from accepted to ended. */
export type TaskParts = ReturnType<typeof buildTaskParts>

export function buildTaskParts(foundation: Foundation) {
  const { config, data, storage, cgroups, capabilities, log } = foundation
  const { path: dataDir } = data
  const { store } = storage
  const settings = launchSettings(foundation)
  const users = foundation.trial.uids && new SandboxUsers(foundation.trial.uids, log)
  const ledger = new Ledger(findCapacity(config).capacity, config.tenantQuota, () => users?.hasFree ?? true)
  const queue = new WaitingQueue<LiveTask>(ledger)
  const complaints = ofDataDir(() => new Complaints(join(dataDir, 'launchers.log')))
  const totals = new Totals()
  const inFlight = new InFlight(store, totals)
  const notifications = ofDataDir(() => new NotifyPipe(join(dataDir, 'launchers'), (event) => inFlight.heard(event)))
  const launchers = launcherHost(foundation, inFlight, { notifyFd: notifications.fd, complaintsFd: complaints.fd })
  const records = new LauncherRecords(dataDir)
  const results = new ResultFiles(dataDir, log)
  const force = new Force({ records, cgroups, serviceId: serviceIdOf(dataDir), log })
  const services = serviceAddresses(foundation)
  const networks = new Networks({ egress: egressOf(foundation, services), store, log })
  const secrets = new Secrets(foundation.secrets)
  const ends = new Ends({ store, records, force, results, settings, networks, totals, log })
  const starts = new Starts({
    ...{ host: launchers, settings, cgroups, capabilities, store, records, ends, force, secrets, networks, users },
  })
  const discards = new Discards({ dataDir, retryMs: config.gcIntervalMs, log })
  const keptLimits = { files: config.maxKeptFiles, bytes: config.maxKeptBytes }
  const outputs = new Outputs({ ...storage, discards, dataDir, limits: keptLimits, log })
  const inputLimits = { files: config.maxInputFiles, bytes: config.maxInputBytes }
  const holds = new FileHolds()
  const staged = new StagedFiles({
    ...{ dataDir, directory: storage.directory, needed: () => stagedForTasks(store.live) },
    limits: { bundle: inputLimits.bytes + inputLimits.files * MAX_ENTRY_BYTES, all: config.maxStagedBytes },
  })
  const inputs = new Inputs({ store, starts, discards, holds, staged, dataDir, users, limits: inputLimits })
  const bundles = new Bundles({ store, holds, dataDir, limits: inputLimits })
  const dispatcher = new Dispatcher({
    ...storage,
    ...{
      ledger,
      queue,
      inFlight,
      records,
      starts,
      ends,
      force,
      results,
      inputs,
      outputs,
      networks,
      users,
      totals,
      log,
    },
    bootId: bootId(),
    graceMs: config.terminationGraceMs,
    retryMs: config.launchRetryMs,
  })
  const killSender = new KillSender(records, log)
  const kills = new Kills({ store, queue, inFlight, dispatcher, records, force, sender: killSender, log })
  if (users !== undefined) users.onFree = () => dispatcher.startWhatFits()
  storage.commit.onRecovered = () => dispatcher.startWhatFits()
  return {
    ...{
      settings,
      ledger,
      queue,
      complaints,
      launchers,
      inFlight,
      records,
      results,
      totals,
      ends,
      starts,
      secrets,
      inputs,
      holds,
      staged,
      bundles,
    },
    ...{ dispatcher, killSender, kills, networks, services },
  }
}

/** Descriptors that the service keeps for itself, and those of a connection through it. */
const OWN_DESCRIPTORS = 512
const DESCRIPTORS_OF_CONNECTION = 2

function egressOf({ config, data, log }: Foundation, services: ServiceAddresses): Egress {
  const most = Math.floor((maxDescriptors() - OWN_DESCRIPTORS) / DESCRIPTORS_OF_CONNECTION)
  return new Egress({
    directory: join(data.path, 'egress'),
    bounds: { allow: config.egressAllow, deny: config.egressDeny ?? [] },
    maxConnections: Math.max(0, Math.min(config.maxEgressConnections, most)),
    maxTasks: config.maxRunningTasks,
    ...{ services, dialer: new Dialer() },
    onFault: (task_id, error) =>
      log.error('a connection of a task could not be served', { task_id, cause: messageOf(error) }),
    onUseFault: (task_id, error) =>
      log.warn('cannot keep what a task uses of its network', { task_id, cause: messageOf(error) }),
  })
}

/** The port of this service is added once it listens, too: it may have picked one. */
function serviceAddresses({ config, access }: Foundation): ServiceAddresses {
  const services = new ServiceAddresses()
  services.addPort(access.address.port)
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

export function buildCallerParts(foundation: Foundation, tasks: TaskParts) {
  const { config, access, data, storage, capabilities, log } = foundation
  const { store, directory, commit } = storage
  const { path: dataDir } = data
  const readiness = new Readiness(commit, directory, dataDir)
  const spares = new SpareDirs(dataDir)
  const late = new LateSubmissions()
  const { sandbox } = tasks.settings
  const submissions = new Submissions({
    ...tasks,
    ...{ late, directory, spares, readiness, store, capabilities, dataDir, sandbox, log },
    looks: new PathLooks(() => startThread('look')),
    planSettings: {
      capability_mode: config.defaultCapabilityMode,
      network: config.defaultNetwork,
      default_limits: {
        pids_max: config.sandboxPidsMax === 0 ? undefined : config.sandboxPidsMax,
        disk_bytes: config.taskDiskBytes === 0 ? undefined : config.taskDiskBytes,
      },
      access: {
        ...{ runtime: access.token === undefined ? 'open' : 'token', control: config.controlAccess },
        isTokenFilePublic: access.isTokenPublic,
      },
    },
    maxQueuedTasks: config.maxQueuedTasks,
    unknownFields: config.unknownFields,
  })
  const retention = new Retention({
    ...{ results: tasks.results, holds: tasks.holds, spares, sandbox, store, directory, dataDir, log },
    retentionSecs: config.resultRetentionSecs,
    intervalMs: config.gcIntervalMs,
  })
  const stagedRetention = new StagedRetention({
    ...{ staged: tasks.staged, directory, log },
    retentionSecs: config.stagedRetentionSecs,
    intervalMs: config.gcIntervalMs,
  })
  return { readiness, late, submissions, retention, stagedRetention }
}

export function buildApp(
  { config, env, access, data, storage, cgroups, capabilities, log }: Foundation,
  { kills, totals, ledger, queue, networks, services, holds, staged, bundles }: TaskParts,
  callers: CallerParts,
  startedAt: number,
): AnyElysia {
  const { store } = storage
  const { path: dataDir } = data
  const runtimeId = config.runtimeId === '' ? hostname() : config.runtimeId
  const platform = platformOf(env)
  return runtimeApp({
    ...{
      ...callers,
      kills,
      queue,
      store,
      dataDir,
      totals,
      networks,
      services,
      holds,
      staged,
      bundles,
      log,
      guard: access.guard,
    },
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
      isDataDirWritable: true, // the lock and the database were just written
      isSandboxDisabled: config.disableLinuxSandbox,
      isCgroupDisabled: config.disableCgroup,
    }),
    config: configSummary(config, {
      ...{ runtimeId, dataDir },
      cgroupRoot: cgroups?.directories.pids ?? cgroups?.directories.memory ?? '',
    }),
    resources: () =>
      resourcesSnapshot(ledger, {
        runtimeId,
        waitingTasks: queue.length,
        statusOf: (id) => store.get(id)?.status ?? 'accepted',
      }),
  })
}
