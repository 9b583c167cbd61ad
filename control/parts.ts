/**
 * Builds the parts of the control service from the inside out: what executes tasks, what the disk holds, what keeps it
 * there.
 *
 * Building reads the data directory. It starts no process but the runtime service of `--with-runtime`, and opens no socket.
 */
import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UsageError } from '../shared/contract/errors.ts'
import { DEFAULT_RUNTIME } from '../shared/contract/runtime-names.ts'
import type { DataDirectory } from '../shared/files/data-directory.ts'
import { lockIdOf } from '../shared/files/directory-lock.ts'
import { keepPrivate } from '../shared/files/private-files.ts'
import { SecretRules } from '../shared/files/secret-rules.ts'
import { openSecrets, type SecretsDirectory } from '../shared/files/secrets-directory.ts'
import type { HttpServer } from '../shared/http/listen.ts'
import type { ServiceAccess } from '../shared/http/service-access.ts'
import { socketPathOf } from '../shared/http/socket-address.ts'
import { isTokenFilePublic, readTokenFile } from '../shared/http/token.ts'
import type { Log } from '../shared/logs/log.ts'
import { runtimeLogFile } from '../shared/logs/log-file.ts'
import { serviceIdOf } from '../shared/process/service-id.ts'
import type { StartProgress } from '../shared/process/start-progress.ts'
import { runCooperatively, START_SLICE_MS, type Steps } from '../shared/process/steps.ts'
import type { StopSignals } from '../shared/process/stop-signals.ts'
import { type RuntimeEntry, runtimeEntry } from '../shared/settings/runtime-entry.ts'
import { Callbacks, readSecret } from './callbacks/callbacks.ts'
import { type ControlConfig, controlSettings } from './config.ts'
import { localExecutors, taskEnvironment } from './executors/local.ts'
import { McpExecutor } from './executors/mcp.ts'
import { ExecutorRegistry } from './executors/registry.ts'
import { RuntimeChild } from './executors/runtime/child.ts'
import { FileMoves } from './executors/runtime/file-moves.ts'
import { Orphans } from './executors/runtime/orphans.ts'
import { ownTokenPath } from './executors/runtime/own-token.ts'
import { RuntimePool } from './executors/runtime/pool.ts'
import type { PoolMember } from './executors/runtime/pool-member.ts'
import { RemoteRemovals } from './executors/runtime/remote-removals.ts'
import { RuntimeExecutor } from './executors/runtime/runtime.ts'
import { SkillsDirectory } from './executors/skills.ts'
import type { AuditLog } from './log/audit-log.ts'
import { refuseDatabaseDirectory } from './log/database-mark.ts'
import { EmbeddedKeeper } from './log/embedded-keeper.ts'
import { EventNumbers } from './log/event-numbers.ts'
import type { Keeper } from './log/keeper.ts'
import { POOL_FILE, PoolFile, type PoolKeeper } from './log/pool-file.ts'
import { databaseAddresses, openDatabaseFile } from './log/postgres/database-addresses.ts'
import type { DatabaseUrl } from './log/postgres/database-url.ts'
import type { SharedKeeper } from './log/postgres/shared-keeper.ts'
import { filesWithInput, type Recovered, recover } from './log/recovery.ts'
import { type McpServerConfig, readMcpConfig } from './mcp-client/config.ts'
import { ProcessRecord } from './mcp-client/process-record.ts'
import { McpServers } from './mcp-client/servers.ts'
import { pollCall } from './operations/get.ts'
import { AddressGuard, type AddressGuards } from './outbound/address-guard.ts'
import { Counters } from './task/counters.ts'
import type { Graph } from './task/graph.ts'
import { Retention, type SharedRoom } from './task/retention.ts'
import { TaskStore } from './task/task-store.ts'
import type { Tracing } from './tracing/tracing.ts'

/** Things that the service needs from its process. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly signals: Pick<StopSignals, 'duringStart' | 'unlessStopped'>
  /** `performance.now()` when the process began. */
  readonly startedAt: number
  readonly access: ServiceAccess
  /** `keep` is to be called once the service has started. */
  readonly directory: DataDirectory
  /** Listens. */
  readonly server: HttpServer
  /** What requests are told meanwhile. */
  readonly progress: StartProgress
  /** Writes the last log lines, then exits. */
  readonly exit: (code: number) => Promise<void>
}

/**
 * Recovers what the data directory holds. Throws `UsageError` for what the user has to change,
 * `StartStopped` when a signal arrives meanwhile. Starts the runtime service of `runtimes`, which the caller has to stop.
 */
export async function buildParts(
  config: ControlConfig,
  host: Host,
  runtimes: Runtimes,
): Promise<{ parts: Parts; earlierRun: EarlierRun }> {
  const secrets = secretsOf(config, host)
  const skills = new SkillsDirectory(config.skillsDir === '' ? undefined : config.skillsDir)
  const reachOf = (tenant: string) => host.access.tokens?.reachOf(tenant) ?? []
  const addressGuards = {
    callbacks: new AddressGuard({ policy: config.callbackPolicy, flag: 'callback-policy', reachOf }),
    http: new AddressGuard({ policy: config.httpPolicy, flag: 'http-policy', reachOf }),
  }
  const local = localExecutors(config, host.env, skills, addressGuards.http, secrets, host.log)
  const executors = new ExecutorRegistry(local, host.log)
  const databaseUrls = databaseAddresses(config)
  const openFile = openDatabaseFile(config, databaseUrls)
  if (openFile !== undefined)
    host.log.warn('other users have rights to the file with the password of the database: chmod 600 it', {
      database_file: openFile,
    })
  assertSchedulesDir(config)
  const callbackSecret = readSecret(config.callbackSecretFile)
  const mcpConfigs = readMcpConfig(config.mcpConfig, host.env)
  keepPrivate(
    config.dataDir,
    [...filesWithInput(config.dataDir), ownTokenPath(config.dataDir), join(config.dataDir, POOL_FILE)],
    host.log,
  )
  const poolFile = databaseUrls.length === 0 ? new PoolFile(config.dataDir) : undefined
  const serviceId = serviceIdOf(config.dataDir)
  await host.signals.unlessStopped(runtimes.child?.start(host.signals.duringStart) ?? Promise.resolve())
  const { storage, earlierRun } =
    databaseUrls.length > 0
      ? await sharedStorage(config, { urls: databaseUrls, lockId: lockIdOf(host.directory.lockFd) }, host)
      : await embeddedStorage(config, host)
  const poolKeeper = poolFile ?? storage.shared!.runtimes.pool
  const runtime = runtimeParts(config, { ...runtimes, keeper: storage.keeper, poolKeeper }, host)
  executors.register(runtime.executor)
  storage.store.onForgotten = (task) => executors.get(task.type)?.forget?.(task)
  const callbacks = new Callbacks({
    ...{ store: storage.store, keeper: storage.keeper, log: host.log },
    ...{ guard: addressGuards.callbacks, secret: callbackSecret, secrets },
  })
  const mcp = mcpParts(config, { configs: mcpConfigs, serviceId }, host)
  const poll = (handleId: string, graphId: string) => pollCall(storage, handleId, graphId)
  executors.register(new McpExecutor(mcp.servers, poll, secrets, addressGuards.http))
  const audit = await auditLog(config, host, storage.shared?.audit)
  const tracing = await tracingParts(config, { store: storage.store, serviceId }, host)
  const listSkills = () => skills.listSkills()
  const secretsFault = () => secrets.rules?.fault()
  const parts = {
    addressGuards,
    audit,
    callbacks,
    executors,
    listSkills,
    mcp,
    runtime,
    secretsFault,
    serviceId,
    storage,
    tracing,
  }
  return { parts, earlierRun }
}

async function auditLog(
  { audit, dataDir }: ControlConfig,
  { access, log }: Host,
  shared: AuditLog | undefined,
): Promise<AuditLog | undefined> {
  if (audit === 'off' || (audit === 'callers' && access.tokens === undefined)) return undefined
  return shared ?? new (await import('./log/audit-log.ts')).AuditFiles({ dataDir, log })
}

/**
 * What a start reports of the earlier run, and has to settle for it. Only for the start: the tasks keep their graphs in
 * memory, also after retention has removed them.
 */
export interface EarlierRun extends Pick<Recovered, 'cutBytes' | 'processes' | 'toKillRemotely' | 'toForget'> {
  readonly graphCount: number
  /** False for a data directory without a journal: no service has run in it. */
  readonly hasJournal: boolean
}

const earlierRunOf = ({ graphs, segments, cutBytes, processes, toKillRemotely, toForget }: Recovered): EarlierRun => ({
  ...{ cutBytes, processes, toKillRemotely, toForget },
  graphCount: graphs.length,
  hasJournal: segments !== undefined,
})

export interface Parts {
  readonly addressGuards: AddressGuards
  /** Undefined if none is kept. */
  readonly audit: AuditLog | undefined
  readonly callbacks: Callbacks
  readonly executors: ExecutorRegistry
  readonly listSkills: SkillsDirectory['listSkills']
  readonly mcp: ReturnType<typeof mcpParts>
  readonly runtime: ReturnType<typeof runtimeParts>
  /** What is wrong with the rules of the secrets; undefined if nothing is. */
  readonly secretsFault: () => string | undefined
  /** Tells the attempts of this data directory from those of others. */
  readonly serviceId: string
  readonly storage: StorageParts
  /** Undefined if no endpoint is set. */
  readonly tracing: Tracing | undefined
}

interface StorageParts {
  readonly store: TaskStore
  readonly keeper: Keeper
  /** The same keeper if it is one on a database. */
  readonly shared: SharedKeeper | undefined
  readonly counters: Counters
  readonly retention: Retention
}

interface Storage {
  readonly storage: StorageParts
  readonly earlierRun: EarlierRun
}

/** The tasks, and what keeps them in the data directory. */
async function embeddedStorage(config: ControlConfig, { signals, log, progress }: Host): Promise<Storage> {
  refuseDatabaseDirectory(config.dataDir)
  const recovered = await signals.unlessStopped(recover(config.dataDir, progress))
  const { lastOrdinal } = recovered
  const { dataDir, persistInterval: intervalMs, eventHistory: maxEvents } = config
  const numbers = new EventNumbers(recovered)
  const store = new TaskStore({ lastSeq: numbers.start, lastOrdinal })
  await signals.unlessStopped(Promise.resolve(runCooperatively(storeAll(store, recovered.graphs), START_SLICE_MS)))
  const keeper = new EmbeddedKeeper({ store, numbers, recovered, dataDir, intervalMs, maxEvents, log })
  const storage = { store, keeper, shared: undefined, ...storeParts(config, store, log) }
  return { storage, earlierRun: earlierRunOf(recovered) }
}

function* storeAll(store: TaskStore, graphs: readonly Graph[]): Steps<void> {
  for (const graph of graphs) {
    yield* store.recover(graph)
    yield
  }
}

interface SharedStorageOptions {
  readonly urls: readonly DatabaseUrl[]
  /** As of `lockIdOf`. */
  readonly lockId: string | undefined
}

/**
 * The tasks, and what keeps them in the database. Waits until this replica is registered. Its code is loaded only if there
 * is a database.
 */
async function sharedStorage(
  config: ControlConfig,
  database: SharedStorageOptions,
  { signals, log, access, progress }: Host,
): Promise<Storage> {
  const { dataDir, lease: leaseMs, databaseTimeout: timeoutMs, eventHistory: maxEvents, onTakeover, cluster } = config
  const [{ openShared }, { useSchema }] = await Promise.all([
    import('./log/postgres/open-shared.ts'),
    import('./log/postgres/schema-name.ts'),
  ])
  useSchema(config.databaseSchema)
  progress.begin('waiting for the database')
  const opening = openShared({
    ...{ ...database, leaseMs, timeoutMs, dataDir, maxEvents, onTakeover, cluster, token: access.token, log },
    hasSchedulesDir: config.schedulesDir !== '',
    signal: signals.duringStart,
  })
  const { store, keeper, recovered } = await signals.unlessStopped(opening)
  const storage = { store, keeper, shared: keeper, ...storeParts(config, store, log, keeper.room) }
  // Processes that an earlier run of this data directory left are found by their environment.
  const nothing = { cutBytes: 0, processes: [], toForget: [], hasJournal: true }
  return { storage, earlierRun: { ...nothing, ...recovered } }
}

const storeParts = (
  { retention: retentionMs, maxStoredTasks, maxGraphTasks, maxStoredBytes }: ControlConfig,
  store: TaskStore,
  log: Log,
  room?: SharedRoom,
) => ({
  counters: new Counters(store),
  retention: new Retention({ store, retentionMs, maxStoredTasks, maxGraphTasks, maxStoredBytes, room, log }),
})

/** Its code is loaded only if there is an endpoint. Throws `UsageError`. */
async function tracingParts(
  { otlpEndpoint: endpoint }: ControlConfig,
  parts: { readonly store: TaskStore; readonly serviceId: string },
  { env, log }: Host,
): Promise<Tracing | undefined> {
  if (endpoint === '' && !env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) return undefined
  const { tracingOf } = await import('./tracing/tracing.ts')
  return tracingOf({ ...parts, endpoint, env, log })
}

/** The MCP servers that tasks call, and the record of their processes. */
function mcpParts(
  config: ControlConfig,
  { configs, serviceId }: { configs: readonly McpServerConfig[]; serviceId: string },
  { env, log }: Host,
) {
  const processes = new ProcessRecord(config.dataDir, log)
  const servers = new McpServers(configs, {
    killGraceMs: config.killGrace,
    env: taskEnvironment(env),
    serviceId,
    record: processes,
    log,
  })
  return { servers, processes }
}

/** Files that hold secrets of this service, which no task gets. */
const ownFiles = ({
  tokenFile,
  tokensFile,
  runtimeTokenFile,
  callbackSecretFile,
  mcpConfig,
  databaseFile,
}: ControlConfig) => ({
  'token-file': tokenFile,
  'tokens-file': tokensFile,
  'callback-secret-file': callbackSecretFile,
  'mcp-config': mcpConfig,
  'database-file': databaseFile,
  ...Object.fromEntries(runtimeTokenFile.map(({ name, path }) => [`runtime-token-file ${name}`, path])),
})

/** Throws `UsageError`. */
function assertSchedulesDir({ schedulesDir }: ControlConfig): void {
  if (schedulesDir !== '' && statSync(schedulesDir, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(`--schedules-dir ${schedulesDir} is no directory (create it)`)
}

/** Throws `UsageError`. */
const secretsOf = (config: ControlConfig, { env, log }: Pick<Host, 'env' | 'log'>): SecretsDirectory =>
  openSecrets({
    ...{ secretsDir: config.secretsDir, credentialsDir: env.CREDENTIALS_DIRECTORY },
    rules: config.secretsRules === '' ? undefined : new SecretRules(resolve(config.secretsRules), log),
    ownFiles: ownFiles(config),
    command: {
      ...{ command: config.secretCommand, ttlMs: config.secretCommandTtl, timeoutMs: config.secretCommandTimeout },
      env,
    },
  })

/** Flags for a log file of the runtime service beside that of this service. */
const logFlags = ({ logFile, maxLogBytes }: ControlConfig): string[] =>
  logFile === '' ? [] : ['--log-file', runtimeLogFile(logFile), '--max-log-bytes', String(maxLogBytes)]

/**
 * Flags with which a runtime service has the same secrets. It gets systemd credentials by its environment. If it has other
 * secrets, its sandboxes hide those of this service.
 */
function secretsFlags(config: ControlConfig, env: Host['env']): string[] {
  const kept = Object.values(ownFiles(config)).filter((path) => path !== '')
  const own = config.secretsDir === '' ? '' : resolve(config.secretsDir)
  const dir = env.SERVICE_RUNTIME_SECRETS_DIR ? resolve(env.SERVICE_RUNTIME_SECRETS_DIR) : own
  const rules = env.SERVICE_RUNTIME_SECRETS_RULES || config.secretsRules
  return [
    ...(dir === '' ? [] : ['--secrets-dir', dir]),
    ...(rules === '' ? [] : ['--secrets-rules', resolve(rules)]),
    ...secretCommandFlags(config, env),
    ...(own === dir || own === '' ? [] : ['--sandbox-mask', own]),
    ...kept.flatMap((path) => ['--secrets-except', resolve(path)]),
    // Tasks of a service that is not root have its user, who may read them.
    ...kept.flatMap((path) => (canBeMasked(resolve(path)) ? ['--sandbox-mask', resolve(path)] : [])),
  ]
}

/** Each sandbox has a /dev and a /proc of its own, and a list of paths is divided by commas. */
const canBeMasked = (path: string): boolean => !/^\/(dev|proc)\/|,/.test(path)

/** The same for the command of the secrets. A runtime service with a command of its own has the times of that. */
const secretCommandFlags = (config: ControlConfig, env: Host['env']): string[] =>
  config.secretCommand === '' || env.SERVICE_RUNTIME_SECRET_COMMAND
    ? []
    : [
        ...['--secret-command', config.secretCommand],
        ...['--secret-command-ttl-ms', String(config.secretCommandTtl)],
        ...['--secret-command-timeout-ms', String(config.secretCommandTimeout)],
      ]

/** The runtime services of the flags. */
export interface Runtimes {
  readonly configured: readonly RuntimeEntry[]
  /** Of those without a token of their own. */
  readonly token: string | undefined
  /** That of `--with-runtime`, which does not run yet. */
  readonly child: RuntimeChild | undefined
}

/** Throws `UsageError`. */
export function runtimesOf(config: ControlConfig, { access, env, log }: Host): Runtimes {
  const configured = configuredRuntimes(config, log)
  const token = env.SERVICE_RUNTIME_TOKEN || access.token
  if (!config.withRuntime) return { configured, token, child: undefined }
  const own = configured.find(({ name }) => name === DEFAULT_RUNTIME)!
  const child = new RuntimeChild({
    ...{ url: own.url, dataDir: config.dataDir, env, log, token: own.token ?? token },
    hasControlToken: access.token !== undefined || access.tokens !== undefined,
    controlAddr: portOnly(config.addr),
    flags: ['--unknown-fields', config.unknownFields, ...logFlags(config), ...secretsFlags(config, env)],
  })
  return { configured, token, child }
}

interface RuntimeNeeds extends Runtimes {
  readonly keeper: Keeper
  /** Keeps the changes of the pool. */
  readonly poolKeeper: PoolKeeper
}

/** The executor of `runtime` tasks. */
function runtimeParts(
  config: ControlConfig,
  { configured, token, child, keeper, poolKeeper }: RuntimeNeeds,
  { env, log }: Host,
) {
  const { SERVICE_RUNTIME_TENANT, SERVICE_RUNTIME_OWNER } = env
  const { dataDir, runtimeAwayTimeout: awayMs } = config
  const pool = new RuntimePool({
    ...{ configured, token, keeper, log },
    ...(config.withRuntime && { started: DEFAULT_RUNTIME }),
  })
  pool.keepIn(poolKeeper)
  const orphans = new Orphans(pool, log)
  orphans.keepIn(keeper.orphans)
  const removals = new RemoteRemovals({ dataDir, pool, keeper, log })
  child?.serve(pool.get()!.service)
  const defaults = { tenant: SERVICE_RUNTIME_TENANT || undefined, owner: SERVICE_RUNTIME_OWNER || undefined }
  const isExpected = ({ name }: PoolMember) => name === DEFAULT_RUNTIME && child?.isExpected === true
  const moves = new FileMoves(log)
  const executor = new RuntimeExecutor({ pool, orphans, removals, moves, defaults, awayMs, isExpected })
  return { executor, pool, orphans, removals, child }
}

/** `:8080`; undefined if the service picks a port or has none. The child is on the same machine, whatever its name. */
const portOnly = (addr: string): string | undefined =>
  socketPathOf(addr) === undefined ? /:0*[1-9]\d*$/.exec(addr)?.[0] : undefined

/** Throws `UsageError`. */
const configuredRuntimes = ({ runtimeUrl, withRuntime, runtimeTokenFile }: ControlConfig, log: Log) =>
  withTokens(withDefault(runtimeUrl, withRuntime), runtimeTokenFile, log)

/** `--with-runtime` starts the one that is called `default`. */
function withDefault(configured: readonly RuntimeEntry[], isStarted: boolean): readonly RuntimeEntry[] {
  if (!isStarted || configured.some(({ name }) => name === DEFAULT_RUNTIME)) return configured
  return [runtimeEntry(controlSettings.runtimeUrl.default!) as RuntimeEntry, ...configured]
}

/** With the tokens of `--runtime-token-file`. Throws `UsageError`. */
function withTokens(
  configured: readonly RuntimeEntry[],
  files: ControlConfig['runtimeTokenFile'],
  log: Log,
): readonly RuntimeEntry[] {
  const tokens = new Map<string, string>()
  for (const { name, path } of files) {
    const fault = tokens.has(name) ? 'has two' : configured.some((each) => each.name === name) ? undefined : 'is none'
    if (fault !== undefined)
      throw new UsageError(`--runtime-token-file: one for each name of --runtime-url, ${name} ${fault}`)
    tokens.set(name, readTokenFile(path, '--runtime-token-file'))
    isTokenFilePublic(path, log)
  }
  return configured.map((entry) => ({ ...entry, token: tokens.get(entry.name) }))
}
