/** The control service: flags, configuration, store, scheduler, server, signals. The only reader of argv and env. */

import { messageOf, stackOf, startFault, UsageError } from '../shared/errors.ts'
import { describeSettings, readCommandLine } from '../shared/flags.ts'
import { createGuard, isLoopback } from '../shared/http-guard.ts'
import { ensureListenable, listen, parseListenAddress, type RunningHttpService } from '../shared/http-service.ts'
import { createLog, type LineSink, type Log, stdoutLines } from '../shared/log.ts'
import { keepPrivate } from '../shared/private-files.ts'
import { bypassProxyForLoopback } from '../shared/proxy.ts'
import { serviceIdOf } from '../shared/service-id.ts'
import { inSlices, type Slices } from '../shared/slices.ts'
import { StartStopped, StopSignals } from '../shared/stop-signals.ts'
import { isTokenFilePublic, readToken } from '../shared/token.ts'
import { VERSION } from '../shared/version.ts'
import { type ControlConfig, controlSettings, controlVariables } from './config.ts'
import { endLeftovers } from './executors/leftovers.ts'
import { localExecutors, taskEnvironment } from './executors/local.ts'
import { McpExecutor } from './executors/mcp.ts'
import { ExecutorRegistry } from './executors/registry.ts'
import { RuntimeChild } from './executors/runtime/child.ts'
import { Orphans } from './executors/runtime/orphans.ts'
import { ownTokenPath } from './executors/runtime/own-token.ts'
import { RemoteRemovals } from './executors/runtime/remote-removals.ts'
import { RuntimeExecutor } from './executors/runtime/runtime.ts'
import { RuntimeService } from './executors/runtime/service.ts'
import { SkillsDirectory } from './executors/skills.ts'
import { prepareDecoding } from './graph/decode.ts'
import type { Graph } from './graph/graph.ts'
import { controlApp } from './http/app.ts'
import { DiskReserve } from './journal/disk-reserve.ts'
import { Handles } from './journal/handles.ts'
import { IdempotencyKeys } from './journal/idempotency.ts'
import { FIRST_SEGMENT, Journal } from './journal/journal.ts'
import { Persistence } from './journal/persistence.ts'
import { filesWithInput, recover } from './journal/recovery.ts'
import { ResultFiles } from './journal/result-files.ts'
import { takeDataDir } from './journal/snapshot.ts'
import { readMcpConfig } from './mcp-client/config.ts'
import { ProcessRecord } from './mcp-client/process-record.ts'
import { McpServers } from './mcp-client/servers.ts'
import { exitAfterFault } from './scheduler/fault-exit.ts'
import { Readiness } from './scheduler/readiness.ts'
import { Scheduler } from './scheduler/scheduler.ts'
import { Counters } from './store/counters.ts'
import { takeHeapHeadroom } from './store/heap-headroom.ts'
import { Retention } from './store/retention.ts'
import { TaskStore } from './store/tasks.ts'

/** Milliseconds beyond the kill grace that an executor may take to return after it was told to stop. */
const EXECUTOR_RETURN_MS = 10_000

/** Milliseconds that the last log lines get to leave. */
const LAST_LINES_MS = 1_000

/** Milliseconds after the start at which is made what the first graph needs, unless that came before. */
const PREPARE_AFTER_MS = 50

/** Milliseconds that open requests get to be answered at the end. */
const LAST_ANSWERS_MS = 1_000

const startedAt = performance.now()
const exitCode = await main()
if (exitCode !== undefined) process.exit(exitCode)

/** The exit code, or undefined while the service runs. */
async function main(): Promise<number | undefined> {
  try {
    const { values, positionals, asked } = readCommandLine(process.argv.slice(2), process.env, controlSettings)
    if (asked === 'help') console.log(help())
    else if (asked === 'version') console.log(`taskmill-control ${VERSION}`)
    else if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}" (see --help)`)
    else return await serve(values)
    return 0
  } catch (error) {
    const fault = startFault(error)
    if (fault === undefined) throw error
    console.error(`taskmill-control: ${fault.message}`)
    return fault.exitCode
  }
}

/** As `main`. Throws `UsageError`. */
async function serve(config: ControlConfig): Promise<number | undefined> {
  const lines = stdoutLines()
  const log = createLog(lines, config.logLevel, 'control')
  const signals = new StopSignals()
  try {
    await start(config, { lines, log, signals })
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

async function start(config: ControlConfig, { lines, log, signals }: Process): Promise<void> {
  const address = parseListenAddress(config.addr, 'addr')
  const token = readToken(config.tokenFile, process.env.SERVICE_TOKEN)
  isTokenFilePublic(config.tokenFile, log)
  const guard = createGuard({ token, allowedHosts: config.allowedHost, listeningHost: address.hostname })
  bypassProxyForLoopback(process.env)
  const skills = new SkillsDirectory(config.skillsDir === '' ? undefined : config.skillsDir)
  const executors = new ExecutorRegistry(localExecutors({ config, env: process.env, skills, log }), log)
  const mcpConfigs = readMcpConfig(config.mcpConfig, process.env)

  const keepDataDir = takeDataDir(config.dataDir)
  ensureListenable(address, 'addr') // before anything but the lock is written
  keepPrivate(config.dataDir, [...filesWithInput(config.dataDir), ownTokenPath(config.dataDir)], log)
  const runtime = runtimeParts(config, token, log)
  executors.register(runtime.executor)
  const serviceId = serviceIdOf(config.dataDir)
  const recovered = await signals.unlessStopped(recover(config.dataDir))
  const { segments, lastSeq, lastOrdinal } = recovered
  const firstSegment = segments === undefined ? FIRST_SEGMENT : segments.newest + 1
  const store = new TaskStore({ lastSeq, lastOrdinal })
  for (const graph of recovered.graphs) store.apply({ kind: 'graph-recovered', graph })
  const oldestSegment = segments?.oldest ?? firstSegment
  const journal = new Journal({ dataDir: config.dataDir, oldestSegment, firstSegment, log })
  const idempotencyKeys = new IdempotencyKeys(recovered.idempotencyKeys)
  const resultFiles = new ResultFiles(config.dataDir, recovered.graphs, log)
  store.onResultDropped = (file) => resultFiles.drop(file)
  store.onForgotten = (task) => executors.get(task.type)?.forget?.(task)
  const handles = new Handles(store, resultFiles)
  const mcpProcesses = new ProcessRecord(config.dataDir, log)
  const leftProcesses = [...recovered.processes, ...mcpProcesses.earlier]
  const mcpServers = new McpServers(mcpConfigs, {
    ...{ killGraceMs: config.killGrace, env: taskEnvironment(process.env), serviceId, record: mcpProcesses, log },
  })
  executors.register(new McpExecutor({ servers: mcpServers, poll: (handleId) => handles.record(handleId) }))
  const persistence = new Persistence({
    store,
    journal,
    idempotencyKeys,
    resultFiles,
    reserve: new DiskReserve(config.dataDir),
    dataDir: config.dataDir,
    intervalMs: config.persistInterval,
    isStateFileBehind: segments !== undefined,
    log,
  })
  const counters = new Counters(store)
  const retention = new Retention({
    store,
    retentionMs: config.retention,
    maxStoredTasks: config.maxStoredTasks,
    log,
  })
  const abandonAfterMs = config.killGrace + EXECUTOR_RETURN_MS
  const scheduler = new Scheduler({
    store,
    executors,
    maxConcurrency: config.maxConcurrency,
    log,
    abandonAfterMs,
    serviceId,
    flushOrThrow: () => persistence.flushOrThrow(),
    flush: () => persistence.flush(),
    onFault: (fault) => endAfterFault(fault),
    toKeep: (task, result) => resultFiles.keep(task, result),
  })

  let isDraining = false
  const release = async () => {
    await runtime.child?.stop()
    await lastLinesOf(lines)
  }
  let hasFault = false
  const endAfterFault = (fault: string) => {
    if (hasFault) return
    hasFault = true
    isDraining = true
    void exitAfterFault(fault, { log, persistence, release, exit: (code) => process.exit(code) })
  }
  const endAfterUncaught = (error: unknown) => {
    log.error('an error was not caught', { cause: stackOf(error) })
    endAfterFault(`an error was not caught: ${messageOf(error)}`)
  }
  process.on('uncaughtException', endAfterUncaught)
  process.on('unhandledRejection', endAfterUncaught)
  const stopping = new AbortController()
  const readiness = new Readiness({
    ...{ isDraining: () => isDraining, schedulerFault: () => scheduler.fault, persistence, retention },
  })
  const { unknownFields } = config
  const intake = { store, scheduler, executors, persistence, retention, readiness, unknownFields, log }
  const listSkills = () => skills.listSkills()
  const { maxBodyBytes } = config
  const app = controlApp({
    intake,
    store,
    scheduler,
    persistence,
    idempotencyKeys,
    resultFiles,
    listSkills,
    mcpServers,
    handles,
    toolParts: {
      ...{ intake, persistence, idempotencyKeys, resultFiles, mcpServers, listSkills, maxBodyBytes },
      stopping: stopping.signal,
    },
    readiness,
    counters,
    log,
    guard,
    startedAt,
    maxBodyBytes,
  })
  if (segments !== undefined)
    await endLeftovers({ processes: leftProcesses, serviceId, graceMs: config.killGrace, log })
  mcpProcesses.forgetEarlier()
  for (const task of recovered.toLetGo) scheduler.letGo(task, task.handle!)
  persistence.onWritableAgain = () => scheduler.goOn()
  const server = await orLetGo(
    async () => {
      if (runtime.child !== undefined) await signals.unlessStopped(runtime.child.start(signals.duringStart))
      signals.duringStart.throwIfAborted()
      return listen(app, address, 'addr')
    },
    () => Promise.all([journal.close(), runtime.child?.stop()]),
  )
  keepDataDir()
  const found = { recovered_graphs: recovered.graphs.length, cut_journal_bytes: recovered.cutBytes }
  log.info('listening', { url: server.url, version: VERSION, pid: process.pid, ...found })
  if (token === undefined && !isLoopback(address.hostname)) {
    log.warn('listening beyond loopback without a token: whoever reaches this address can run tasks (set --token-file)')
  }
  runtime.orphans.start()
  runtime.removals.start()
  void inSlices(resumeAll(scheduler, recovered.graphs))
  setTimeout(() => {
    prepareDecoding()
    takeHeapHeadroom()
  }, PREPARE_AFTER_MS).unref()

  const stop = async (signal: NodeJS.Signals) => {
    if (isDraining) {
      scheduler.interrupt()
      return
    }
    isDraining = true
    log.info('stopping', { signal })
    const endMcpServers = () => Promise.race([mcpServers.close(), Bun.sleep(abandonAfterMs)])
    const code = await shutDown(
      { scheduler, endMcpServers, stopping, server, persistence, log },
      config.shutdownTimeout,
    )
    await release()
    process.exit(code)
  }
  signals.started(stop)
}

/** A start that is stopped, or fails for its address or its runtime service, leaves neither a segment nor a process. */
async function orLetGo<T>(step: () => Promise<T>, letGo: () => Promise<unknown>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    await letGo()
    throw error
  }
}

/** There may be many graphs, and requests are answered already. */
function* resumeAll(scheduler: Scheduler, graphs: readonly Graph[]): Slices<void> {
  for (const graph of graphs) {
    if (graph.live > 0) scheduler.resume(graph)
    yield
  }
}

type Parts = {
  readonly scheduler: Scheduler
  readonly endMcpServers: () => Promise<void>
  /** To be aborted once nothing happens any more that anybody could wait for. */
  readonly stopping: AbortController
  readonly server: RunningHttpService
  readonly persistence: Persistence
  readonly log: Log
}

async function shutDown(parts: Parts, graceMs: number): Promise<number> {
  const { scheduler, endMcpServers, stopping, server, persistence, log } = parts
  await scheduler.stop(graceMs)
  const mcpServersEnded = endMcpServers()
  stopping.abort()
  try {
    await persistence.stop()
  } catch (error) {
    log.error('cannot write the state file', { cause: String(error) })
    return 1
  }
  await Promise.all([server.stop(LAST_ANSWERS_MS), mcpServersEnded])
  log.info('stopped')
  return 0
}

/** What tasks of type `runtime` need. `token` is what this service wants itself. */
function runtimeParts(config: ControlConfig, token: string | undefined, log: Log) {
  const { SERVICE_RUNTIME_TOKEN, SERVICE_RUNTIME_TENANT, SERVICE_RUNTIME_OWNER } = process.env
  const { dataDir, runtimeUrl: url, runtimeAwayTimeout: awayMs } = config
  const itsToken = SERVICE_RUNTIME_TOKEN || token
  const service = new RuntimeService({ url, token: itsToken })
  const orphans = new Orphans({ dataDir, service, log })
  const removals = new RemoteRemovals({ dataDir, service, log })
  const child = config.withRuntime
    ? new RuntimeChild({
        service,
        dataDir,
        env: process.env,
        token: itsToken,
        hasControlToken: token !== undefined,
        log,
        flags: ['--unknown-fields', config.unknownFields],
      })
    : undefined
  const defaults = { tenant: SERVICE_RUNTIME_TENANT || undefined, owner: SERVICE_RUNTIME_OWNER || undefined }
  const isExpected = () => child?.isExpected ?? false
  const executor = new RuntimeExecutor({ service, orphans, removals, defaults, awayMs, isExpected })
  return { executor, orphans, removals, child }
}

function help(): string {
  const variables = Object.entries(controlVariables).map(([name, sentence]) => `  ${name}\n      ${sentence}`)
  return `taskmill-control ${VERSION}: accepts graphs of tasks and runs them.

Usage: taskmill-control [flags]

Flags (--name value, --name=value or -name value; a flag beats its variable, which beats the default):
${describeSettings(controlSettings)}
  --help
      Show this text.
  --version
      Show the version.

Variables without a flag:
${variables.join('\n')}`
}
