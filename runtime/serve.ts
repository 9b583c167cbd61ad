/**
 * The service: store, ledger, launchers, dispatcher, server, signals, in this order. Called by `main.ts`.
 *
 * A start first locks the data directory, then takes up what an earlier service left, and listens last: whoever asks
 * finds every task that was ever accepted.
 */
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { CAPABILITY_SNAPSHOT_VERSION, type RuntimeConfigSummary } from '../shared/contract/runtime-info.ts'
import { messageOf, UsageError } from '../shared/errors.ts'
import { HeldDirectory } from '../shared/held-directory.ts'
import { createGuard, isLoopback } from '../shared/http-guard.ts'
import { ensureListenable, listen, parseListenAddress } from '../shared/http-service.ts'
import { isoTime } from '../shared/iso-time.ts'
import { createLog, type LineSink, type Log, stdoutLines } from '../shared/log.ts'
import { keepPrivate } from '../shared/private-files.ts'
import { bootId } from '../shared/processes.ts'
import { serviceIdOf } from '../shared/service-id.ts'
import { StartStopped, StopSignals } from '../shared/stop-signals.ts'
import { isTokenFilePublic, readToken } from '../shared/token.ts'
import { VERSION } from '../shared/version.ts'
import type { ServeConfig } from './config.ts'
import { Dispatcher } from './dispatch/dispatcher.ts'
import { Intake } from './dispatch/intake.ts'
import { startedProcess } from './dispatch/launch-ending.ts'
import { baseEnvironment, type SandboxSettings } from './dispatch/launch-plan.ts'
import { Launches } from './dispatch/launches.ts'
import { endLeftGroups, sweepAbandonedGroups } from './dispatch/left-groups.ts'
import { recoverTasks } from './dispatch/recovery.ts'
import { ResultFiles } from './dispatch/result-files.ts'
import { Retention } from './dispatch/retention.ts'
import { Totals } from './dispatch/totals.ts'
import { WaitingQueue } from './dispatch/waiting-queue.ts'
import { capabilityManifest, capabilitySet } from './host/capabilities.ts'
import { findCapacity } from './host/capacity.ts'
import { ownGroups } from './host/own-groups.ts'
import { PathLooks } from './host/path-looks.ts'
import { platformOf } from './host/platform.ts'
import { findSandboxPaths } from './host/sandbox-paths.ts'
import { serviceUser } from './host/service-user.ts'
import { startThread } from './host/threads.ts'
import { runtimeApp } from './http/app.ts'
import { DEFAULT_CGROUP_ROOT, leaveCgroups, TaskCgroups } from './launcher/cgroup.ts'
import { cgroupCapabilities } from './launcher/cgroup-capabilities.ts'
import { Complaints } from './launcher/complaints.ts'
import { chooseLauncher, type LauncherProgram } from './launcher/embedded.ts'
import { ForkServer } from './launcher/fork-server.ts'
import type { LauncherHost } from './launcher/launcher-host.ts'
import { type LauncherEvent, NotifyPipe } from './launcher/notify.ts'
import { PORTABLE_LAUNCHER } from './launcher/portable/subcommand.ts'
import { ChildLaunchers } from './launcher/spawn.ts'
import { trySandbox } from './launcher/trial.ts'
import { Ledger } from './ledger/ledger.ts'
import { resourcesSnapshot } from './ledger/snapshot.ts'
import { makeTasksDir, takeDataDir } from './store/data-dir.ts'
import { databaseFiles, databasePath, openDatabase } from './store/database.ts'
import { DirectoryGuard } from './store/directory-guard.ts'
import { GroupCommit } from './store/group-commit.ts'
import { Readiness } from './store/readiness.ts'
import { type LiveTask, TaskStore } from './store/task-store.ts'
import { WalSync } from './store/wal-sync.ts'

/** Milliseconds that open requests get to be answered at the end. */
const LAST_ANSWERS_MS = 1_000

/** Milliseconds that the last log lines get to leave. */
const LAST_LINES_MS = 1_000

type Environment = Readonly<Record<string, string | undefined>>

/** Undefined once the service listens; it then ends the process by itself. Else the exit code of a start that was stopped. */
export async function serve(config: ServeConfig, env: Environment): Promise<number | undefined> {
  const lines = stdoutLines()
  const log = createLog(lines, config.logLevel, 'runtime')
  const signals = new StopSignals()
  try {
    await start(config, env, { lines, log, signals })
    return undefined
  } catch (error) {
    if (!(error instanceof StartStopped)) throw error
    log.info('stopped before it listened', { signal: error.signal })
    await lastLinesOf(lines)
    return 0
  }
}

/** A slow reader of our output must not keep the service from ending. */
async function lastLinesOf(lines: LineSink): Promise<void> {
  await Promise.race([lines.drain(), Bun.sleep(LAST_LINES_MS)])
}

interface Process {
  readonly lines: LineSink
  readonly log: Log
  readonly signals: StopSignals
}

async function start(config: ServeConfig, env: Environment, { lines, log, signals }: Process): Promise<void> {
  const address = parseListenAddress(config.listenAddr, 'listen-addr')
  const token = readToken(config.tokenFile, env.SERVICE_TOKEN)
  const hasPublicTokenFile = isTokenFilePublic(config.tokenFile, log)
  const guard = createGuard({
    ...{ token, allowedHosts: config.allowedHost, listeningHost: address.hostname },
    tokenFile: config.tokenFile !== '' && isLoopback(address.hostname) ? resolve(config.tokenFile) : undefined,
  })
  const startedAt = Date.now()

  process.umask(0o077) // requests hold secrets
  const { dataDir, lockFd: directoryLockFd, keepDataDir } = takeDataDir(config.dataDir)
  ensureListenable(address, 'listen-addr') // before the database and the launcher are written
  makeTasksDir(dataDir)
  const sandboxPaths = findSandboxPaths({ ...config, dataDir })
  keepPrivate(dataDir, databaseFiles(dataDir), log)
  const launcher = launcherProgram(dataDir)
  const isRoot = process.getuid?.() === 0
  const sandboxUid = isRoot ? config.sandboxUid : undefined
  const trial = trySandbox({ launcher, sandboxUid, isSandboxDisabled: config.disableLinuxSandbox })
  const { db, commit, directory, store } = openStore(dataDir, log)
  const { capacity } = findCapacity(config)
  const ledger = new Ledger(capacity, config.tenantQuota)
  const queue = new WaitingQueue<LiveTask>(ledger)
  const serviceId = serviceIdOf(dataDir)
  const cgroups = config.disableCgroup
    ? undefined
    : TaskCgroups.prepare({ root: config.cgroupRoot || DEFAULT_CGROUP_ROOT, serviceId, dataDir })
  if (cgroups !== undefined && cgroups.unrecorded.length > 0) {
    const causes = cgroups.unrecorded
    log.warn('control groups have no record: no other service removes them if this one is killed', { causes })
  }
  // Also when the start comes to nothing, as when the address is taken.
  process.on('exit', () => cgroups !== undefined && leaveCgroups(cgroups))
  const capabilities = capabilitySet({
    ...{ isLauncherNative: launcher.isNative, isRoot, own_groups: ownGroups() },
    ...cgroupCapabilities(cgroups),
    ...(await signals.unlessStopped(trial)),
  })
  const complaints = ofDataDir(() => new Complaints(join(dataDir, 'launchers.log')))
  const onEvent = (event: LauncherEvent) => {
    launchers.heard(event)
    if (event.event === 'started') dispatcher.onStarted(event.task_id, startedProcess(event))
    else if (event.event === 'timeout') dispatcher.onTimeout(event.task_id)
    else if (event.event === 'failed') launches.onFault(event.task_id, event)
    else if (event.event === 'ended') dispatcher.onOutcome(event.task_id)
  }
  const notifications = ofDataDir(() => new NotifyPipe(join(dataDir, 'launchers'), onEvent))
  const descriptors = { notifyFd: notifications.fd, complaintsFd: complaints.fd }
  const launchers: LauncherHost = launcher.isNative
    ? new ForkServer({ program: launcher.command[0], ...descriptors, directoryLockFd, env }, log)
    : new ChildLaunchers({ program: launcher, ...descriptors })
  const sandbox: SandboxSettings = {
    user: sandboxUid === undefined ? undefined : { uid: sandboxUid, name: serviceUser(sandboxUid) },
    canFilter: capabilities.seccomp.isAvailable,
    ...sandboxPaths,
  }
  const launches = new Launches({
    host: launchers,
    settings: {
      graceMs: config.terminationGraceMs,
      maxOutputBytes: config.maxOutputBytes,
      baseEnvironment: baseEnvironment(env, serviceUser(process.getuid?.())),
      sandbox,
    },
    ...{ cgroups, capabilities, dataDir, serviceId, store, log },
  })
  const graceMs = config.terminationGraceMs
  const results = new ResultFiles(dataDir, log)
  const dispatcher = new Dispatcher({
    ...{ store, commit, directory, ledger, queue, launches, results, graceMs, log },
    retryMs: config.launchRetryMs,
    bootId: bootId(),
  })
  const totals = new Totals()
  dispatcher.onRunning = () => totals.started()
  dispatcher.onEnded = (row) => totals.ended(row)
  commit.onRecovered = () => dispatcher.startWhatFits()

  const readiness = new Readiness(commit, directory, dataDir)
  const intake = new Intake({
    ...{ directory, readiness, store, ledger, dispatcher, launches, capabilities, totals, dataDir, sandbox, log },
    looks: new PathLooks(() => startThread('look')),
    planSettings: {
      capability_mode: config.defaultCapabilityMode,
      sandbox_pids_max: config.sandboxPidsMax === 0 ? undefined : config.sandboxPidsMax,
      access: {
        ...{ runtime: token === undefined ? 'open' : 'token', control: config.controlAccess },
        isTokenFilePublic: hasPublicTokenFile,
      },
    },
    maxQueuedTasks: config.maxQueuedTasks,
    unknownFields: config.unknownFields,
  })
  const retention = new Retention({
    ...{ results, store, directory, dataDir, log },
    retentionSecs: config.resultRetentionSecs,
    intervalMs: config.gcIntervalMs,
  })
  const runtimeId = config.runtimeId === '' ? hostname() : config.runtimeId
  const platform = platformOf(env)
  const app = runtimeApp({
    ...{ intake, dispatcher, retention, store, dataDir, readiness, totals, log, guard },
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
      ...{ runtimeId, platform, capacity },
      collectedAt: startedAt,
      isDataDirWritable: true, // the lock and the database were just written
      isSandboxDisabled: config.disableLinuxSandbox,
      isCgroupDisabled: config.disableCgroup,
    }),
    config: configSummary({
      config,
      runtimeId,
      dataDir,
      cgroupRoot: cgroups?.directories.pids ?? cgroups?.directories.memory ?? '',
    }),
    resources: () =>
      resourcesSnapshot(ledger, {
        runtimeId,
        waitingTasks: queue.length,
        statusOf: (id) => store.get(id)?.status ?? 'accepted',
      }),
  })
  const recovered = recoverTasks({ store, ledger, dispatcher, launches, bootId: bootId(), log })
  if (cgroups !== undefined) await endLeftGroups(cgroups, (id) => dispatcher.isRunning(id), log)
  signals.duringStart.throwIfAborted()
  const server = listen(app, address, 'listen-addr')
  keepDataDir()
  log.info('listening', { url: server.url, version: VERSION, pid: process.pid, ...recovered })
  if (token === undefined && !isLoopback(address.hostname)) {
    log.warn('listening beyond loopback without a token: whoever reaches this address can run tasks (set --token-file)')
  }
  dispatcher.startWhatFits()
  if (cgroups !== undefined) void sweepAbandonedGroups(cgroups, log)
  const lookingAround = setInterval(() => {
    dispatcher.lookAround()
    complaints.keepShort()
  }, config.dispatchPollIntervalMs)
  void retention
    .removeStrays()
    .catch((error) => log.error('cannot remove stray directories', { cause: messageOf(error) }))
  if (config.resultRetentionSecs > 0) retention.start()

  let isStopping = false
  const stop = async (signal: NodeJS.Signals) => {
    if (isStopping) return
    isStopping = true
    log.info('stopping', { signal, running_tasks: dispatcher.runningCount })
    intake.stop()
    dispatcher.stop()
    retention.stop()
    clearInterval(lookingAround)
    readiness.isStopping = true
    await server.stop(LAST_ANSWERS_MS)
    await launchers.close()
    commit.settle()
    // What we have promised is on the disk, and what became of the tasks is in their files.
    if (commit.fault !== undefined)
      log.warn('the database lacks what was not written', { cause: messageOf(commit.fault) })
    db.close()
    log.info('stopped')
    await lastLinesOf(lines)
    process.exit(0)
  }
  signals.started(stop)
}

/** Throws `UsageError` when the launcher cannot be put into the data directory, or cannot run there. */
function launcherProgram(dataDir: string): LauncherProgram {
  try {
    return chooseLauncher(dataDir, [process.execPath, PORTABLE_LAUNCHER])
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** Something of ours in the data directory, or `UsageError`: whatever else has its name is not for us to remove. */
function ofDataDir<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw new UsageError(`${messageOf(error)} (move it away, or choose another --data-dir)`)
  }
}

function openStore(dataDir: string, log: Log) {
  const db = openDatabase(dataDir)
  const sync = new WalSync(databasePath(dataDir))
  const directory = new DirectoryGuard(new HeldDirectory(dataDir), sync.fd, log)
  const commit = new GroupCommit(db, sync, directory, log)
  return { db, commit, directory, store: new TaskStore(db, commit) }
}

interface SummaryContext {
  readonly config: ServeConfig
  readonly runtimeId: string
  readonly dataDir: string
  readonly cgroupRoot: string
}

const configSummary = ({ config, runtimeId, dataDir, cgroupRoot }: SummaryContext): RuntimeConfigSummary => ({
  runtime_id: runtimeId,
  listen_addr: config.listenAddr,
  data_dir: dataDir,
  max_running_tasks: config.maxRunningTasks,
  max_queued_tasks: config.maxQueuedTasks,
  termination_grace_ms: config.terminationGraceMs,
  result_retention_secs: config.resultRetentionSecs,
  gc_interval_ms: config.gcIntervalMs,
  dispatch_poll_interval_ms: config.dispatchPollIntervalMs,
  cgroup_root: cgroupRoot,
  cgroup_enabled: cgroupRoot !== '',
  default_capability_mode: config.defaultCapabilityMode,
})
