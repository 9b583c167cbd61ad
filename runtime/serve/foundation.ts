/**
 * What the service stands on: its address and callers, the data directory, the store, and what this host can do.
 * Claimed, opened and tried at the start.
 */

import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { claimDataDirectory, type DataDirectory, makeOrRefuse } from '../../shared/files/data-directory.ts'
import { LOCK_FILES } from '../../shared/files/directory-lock.ts'
import { DiskReserve } from '../../shared/files/disk-reserve.ts'
import { HeldDirectory } from '../../shared/files/held-directory.ts'
import { keepPrivate } from '../../shared/files/private-files.ts'
import { SecretRules } from '../../shared/files/secret-rules.ts'
import { openSecrets, type SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { advertisedHost } from '../../shared/http/advertised-url.ts'
import { isLoopback } from '../../shared/http/guard.ts'
import { type HttpServer, listen } from '../../shared/http/listen.ts'
import { type ServiceAccess, serviceAccess } from '../../shared/http/service-access.ts'
import type { Log } from '../../shared/logs/log.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import type { StopSignals } from '../../shared/process/stop-signals.ts'
import { type ServeConfig, uidRange } from '../config.ts'
import { DirectoryGuard } from '../files/directory-guard.ts'
import { taskDir, tasksDir } from '../files/task-dir.ts'
import { capabilitySet } from '../host/capabilities.ts'
import { cgroupCapabilities } from '../host/cgroup-capabilities.ts'
import { findSandboxPaths } from '../host/sandbox-paths.ts'
import { SandboxUids, TRIAL } from '../host/sandbox-uids.ts'
import { userGroups } from '../host/service-user.ts'
import { DEFAULT_CGROUP_ROOT, leaveCgroups, TaskCgroups } from '../host/task-cgroups.ts'
import { chooseLauncher, type LauncherProgram } from '../launch/embedded.ts'
import { trySandbox } from '../launch/trial.ts'
import { portableLauncher } from '../portable/subcommand.ts'
import { databaseFiles, databasePath, openDatabase } from '../store/database.ts'
import { GroupCommit } from '../store/group-commit.ts'
import { TaskStore } from '../store/task-store.ts'
import { WalSync } from '../store/wal-sync.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The address of the service, and its callers. A caller on this machine is told where the token is. */
const accessOf = (config: ServeConfig, env: Environment, log: Log): ServiceAccess =>
  serviceAccess(
    {
      listen: { text: config.listenAddr, setting: '--listen-addr (SERVICE_RUNTIME_LISTEN_ADDR)' },
      tokenFile: config.tokenFile,
      tokensFile: config.tokensFile,
      hasOnlyRights: true,
      token: env.SERVICE_TOKEN,
      allowedHosts: [...config.allowedHost, ...registeredHosts(config)],
      shownTokenFile: ({ hostname }) =>
        config.tokenFile !== '' && isLoopback(hostname) ? resolve(config.tokenFile) : undefined,
    },
    log,
  )

/** Control calls this service by the host name that is registered. */
const registeredHosts = ({ register, advertise }: ServeConfig): string[] =>
  register === '' ? [] : [advertisedHost(advertise)]

const secretsOf = (
  { secretsDir, secretsExcept, secretsRules, tokenFile, tokensFile, ...config }: ServeConfig,
  env: Environment,
  log: Log,
): SecretsDirectory =>
  openSecrets({
    ...{ secretsDir, credentialsDir: env.CREDENTIALS_DIRECTORY, otherFiles: secretsExcept },
    rules: secretsRules === '' ? undefined : new SecretRules(resolve(secretsRules), log),
    ownFiles: { 'token-file': tokenFile, 'tokens-file': tokensFile },
    command: {
      ...{ command: config.secretCommand, ttlMs: config.secretCommandTtlMs, timeoutMs: config.secretCommandTimeoutMs },
      env,
    },
  })

/** The directory of the certificate authority of sandboxes. */
export const authorityDir = ({ egressCa }: ServeConfig, dataDir: string): string =>
  egressCa === '' ? join(dataDir, 'egress-ca') : resolve(egressCa)

/** What only one service may have. */
export interface Place {
  readonly access: ServiceAccess
  readonly secrets: SecretsDirectory
  readonly data: DataDirectory
  /** Listens. To be stopped if the start fails. */
  readonly server: HttpServer
}

/**
 * Nothing but the lock is written before the address is ours. A request waits for the end of the start, however long it takes:
 * control would take a 503 for the end of an attempt.
 */
export async function claimPlace(config: ServeConfig, env: Environment, log: Log): Promise<Place> {
  const access = accessOf(config, env, log)
  const secrets = secretsOf(config, env, log)
  process.umask(0o077) // requests hold secrets
  const data = claimDataDirectory(config.dataDir, LOCK_FILES.runtime)
  return { access, secrets, data, server: await listen(access.address, 'listen-addr') }
}

/** The launcher for this machine and the paths that sandboxes hide. `tried` resolves with the sandboxes that work. */
type SandboxTrial = ReturnType<typeof beginSandboxTrial>

function beginSandboxTrial(config: ServeConfig, dataDir: string, secrets: SecretsDirectory, log: Log) {
  const paths = findSandboxPaths({
    ...config,
    dataDir,
    secretsDir: secrets.path,
    egressCa: authorityDir(config, dataDir),
  })
  keepPrivate(dataDir, databaseFiles(dataDir), log)
  const launcher = launcherProgram(dataDir)
  const isRoot = process.getuid?.() === 0
  const uids = isRoot
    ? new SandboxUids(uidRange(config), { dataDir, taskDirOf: (id) => taskDir(dataDir, id).task_dir, log })
    : undefined
  const sandboxUid = uids?.forTrial()
  const tried = trySandbox({ launcher, sandboxUid, isSandboxDisabled: config.disableLinuxSandbox }).finally(() =>
    uids?.release(TRIAL),
  )
  return { launcher, isRoot, uids, paths, tried }
}

/** Throws `UsageError` when the launcher cannot be put into the data directory, or cannot run there. */
function launcherProgram(dataDir: string): LauncherProgram {
  try {
    return chooseLauncher(dataDir, portableLauncher())
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

type Storage = ReturnType<typeof openStorage>

function openStorage(dataDir: string, log: Log) {
  const db = openDatabase(dataDir)
  const sync = new WalSync(databasePath(dataDir))
  const directory = new DirectoryGuard(new HeldDirectory(dataDir), sync.fd, log)
  const commit = new GroupCommit({ db, sync, directory, reserve: new DiskReserve(dataDir), log })
  return { db, commit, directory, store: new TaskStore(db, commit) }
}

/**
 * The cgroups of all tasks; undefined where they are disabled. The exit removes unused ones, even of a refused start.
 */
function prepareCgroups(config: ServeConfig, dataDir: string, log: Log): TaskCgroups | undefined {
  if (config.disableCgroup) return undefined
  const root = config.cgroupRoot || DEFAULT_CGROUP_ROOT
  const cgroups = TaskCgroups.prepare({ root, serviceId: serviceIdOf(dataDir), dataDir })
  if (cgroups.unrecorded.length > 0) {
    const causes = cgroups.unrecorded
    log.warn('control groups have no record: no other service removes them if this one is killed', { causes })
  }
  process.on('exit', () => leaveCgroups(cgroups))
  return cgroups
}

/** The capabilities of this host. Called after the trial of the sandbox. */
const provenCapabilities = (
  { launcher, isRoot }: SandboxTrial,
  cgroups: TaskCgroups | undefined,
  tried: Awaited<SandboxTrial['tried']>,
) =>
  capabilitySet({
    ...{ isLauncherNative: launcher.isNative, isRoot, own_groups: userGroups() },
    ...cgroupCapabilities(cgroups),
    ...tried,
  })

/** The inputs of the functions below. */
export interface Foundation extends Place {
  readonly config: ServeConfig
  readonly env: Environment
  readonly trial: SandboxTrial
  readonly storage: Storage
  readonly cgroups: TaskCgroups | undefined
  readonly capabilities: ReturnType<typeof provenCapabilities>
  readonly log: Log
}

/** Finds out what the host can do while the database is opened. */
export async function layFoundation(
  config: ServeConfig,
  env: Environment,
  place: Place,
  log: Log,
  signals: StopSignals,
): Promise<Foundation> {
  const { data, secrets } = place
  // A refused address adds no directory to a data directory that was there before.
  makeOrRefuse(data.path, () => mkdirSync(tasksDir(data.path), { recursive: true, mode: 0o700 }))
  const trial = beginSandboxTrial(config, data.path, secrets, log)
  const storage = openStorage(data.path, log)
  const cgroups = prepareCgroups(config, data.path, log)
  const capabilities = provenCapabilities(trial, cgroups, await signals.unlessStopped(trial.tried))
  return { ...place, config, env, trial, storage, cgroups, capabilities, log }
}
