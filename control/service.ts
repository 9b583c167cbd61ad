/** The control service: schedules and answers with the parts it is given; starts, stops, and ends after a defect. */
import { writeSync } from 'node:fs'
import { messageOf, stackOf } from '../shared/contract/errors.ts'
import { advertisedUrl } from '../shared/http/advertised-url.ts'
import { serveApp } from '../shared/http/serve-app.ts'
import { announce } from '../shared/http/service-access.ts'
import { runCooperatively, type Steps } from '../shared/process/steps.ts'
import type { StopSignals } from '../shared/process/stop-signals.ts'
import type { ControlConfig } from './config.ts'
import { endLeftovers } from './executors/leftovers.ts'
import { exitAfterFault } from './fault-exit.ts'
import { controlApp } from './http/app.ts'
import { taskAdditions } from './operations/add-tasks.ts'
import { CallerQuotas } from './operations/caller-quotas.ts'
import { EventStreams } from './operations/event-streams.ts'
import type { Ground } from './operations/ground.ts'
import { Readiness } from './operations/readiness.ts'
import { scheduleFileVerbs, scheduleVerbs } from './operations/schedule-verbs.ts'
import { buildParts, type EarlierRun, type Host, type Parts, runtimesOf } from './parts.ts'
import { Scheduler } from './scheduler/scheduler.ts'
import { ScheduleFiles } from './schedules/schedule-files.ts'
import { Schedules } from './schedules/schedules.ts'
import type { Graph, Task } from './task/graph.ts'

/** Milliseconds beyond the kill grace that an executor may take to return after it was told to stop. */
const EXECUTOR_RETURN_MS = 10_000

/** The exit code of a replica that was declared dead: EX_TEMPFAIL of sysexits.h. */
const FENCED_EXIT_CODE = 75

/** Milliseconds that open requests get to be answered at the end. */
const LAST_ANSWERS_MS = 1_000

/** Starts the service on the server of `host`. Throws `UsageError` and `StartStopped`; then no process of this start is left. */
export async function startControl(config: ControlConfig, host: Host & { signals: StopSignals }): Promise<void> {
  const runtimes = runtimesOf(config, host)
  try {
    const { parts, earlierRun } = await buildParts(config, host, runtimes)
    const service = new ControlService(config, host, parts)
    process.on('uncaughtException', (error) => service.failed(error))
    process.on('unhandledRejection', (error) => service.failed(error))
    await service.start(earlierRun)
    host.signals.started((signal) => void service.stop(signal))
  } catch (error) {
    await runtimes.child?.stop()
    throw error
  }
}

export class ControlService {
  readonly #config: ControlConfig
  readonly #host: Host
  readonly #parts: Parts
  readonly #scheduler: Scheduler
  readonly #schedules: Schedules
  readonly #scheduleFiles: ScheduleFiles
  readonly #app: ReturnType<typeof controlApp>
  /** Aborted once nothing happens any more that a caller could wait for. */
  readonly #stopping = new AbortController()
  readonly #abandonAfterMs: number
  #isDraining = false
  #hasFault = false

  constructor(config: ControlConfig, host: Host, parts: Parts) {
    this.#config = config
    this.#host = host
    this.#parts = parts
    this.#abandonAfterMs = config.killGrace + EXECUTOR_RETURN_MS
    this.#scheduler = this.#newScheduler()
    this.#scheduler.groups.recover(parts.storage.store.graphs)
    this.#schedules = this.#newSchedules()
    const { schedules: kept } = parts.storage.keeper
    this.#scheduleFiles = new ScheduleFiles(config.schedulesDir, kept, this.#schedules, host.log)
    this.#app = this.#newApp()
  }

  #newScheduler(): Scheduler {
    const { executors, serviceId, storage, tracing } = this.#parts
    const { store, keeper, retention } = storage
    return new Scheduler({
      store,
      executors,
      maxConcurrency: this.#config.maxConcurrency,
      log: this.#host.log,
      abandonAfterMs: this.#abandonAfterMs,
      serviceId,
      isTracing: tracing !== undefined,
      keeper,
      retention,
      onFault: (fault) => this.#endAfterFault(fault),
      maxReferenceBytes: this.#config.maxReferenceBytes,
      maxFanOut: this.#config.maxFanOut,
      maxCachedOutcomes: this.#config.maxCachedOutcomes,
      maxGraphResultBytes: this.#config.maxGraphResultBytes,
    })
  }

  #newSchedules(): Schedules {
    const { store, keeper } = this.#parts.storage
    const { maxSchedules } = this.#config
    return new Schedules({ store, kept: keeper.schedules, maxSchedules, log: this.#host.log })
  }

  #newApp(): ReturnType<typeof controlApp> {
    const { addressGuards, audit, callbacks, executors, listSkills, mcp, runtime, secretsFault, storage, tracing } =
      this.#parts
    const { access, log, startedAt } = this.#host
    const { maxBodyBytes, maxFanOut, maxGraphResultBytes, mcpToolsets, unknownFields } = this.#config
    const { store, keeper, retention, counters } = storage
    const ground: Ground = {
      ...{ store, scheduler: this.#scheduler, executors, keeper, retention, stopping: this.#stopping.signal, log },
      ...{
        addressGuards,
        audit,
        callbacks,
        schedules: this.#schedules,
        scheduleFiles: this.#scheduleFiles,
        listSkills,
        secretsFault,
        mcpServers: mcp.servers,
        unknownFields,
        mcpToolsets,
        maxBodyBytes,
        maxFanOut,
      },
      ...{ maxGraphResultBytes, runtimePool: runtime.pool, tracing, quotas: new CallerQuotas(store, mcp.servers) },
      callerNamed: (name) => access.tokens?.callerNamed(name),
    }
    const readiness = new Readiness(ground, () => this.#isDraining)
    const eventStreams = new EventStreams(ground, this.#config.maxEventStreams)
    const parts = { ...ground, readiness, eventStreams }
    this.#schedules.use(scheduleVerbs(parts))
    this.#scheduler.useAdditions(taskAdditions(parts))
    this.#scheduleFiles.use(scheduleFileVerbs(parts))
    const streamLimits = { keepAliveMs: this.#config.eventKeepAlive, slowClientMs: this.#config.slowClientTimeout }
    const { guard, tokens, sessions } = access
    return controlApp({ parts, counters, guard, tokens, sessions, streamLimits, startedAt })
  }

  /** Throws `UsageError` and `StartStopped`; then no socket or journal segment of this start is left. */
  async start(earlierRun: EarlierRun): Promise<void> {
    const { callbacks, runtime, storage } = this.#parts
    const { directory, server } = this.#host
    await this.#endLeftovers(earlierRun)
    this.#settleElsewhere(earlierRun)
    this.#scheduler.cache.fill(storage.store.graphs)
    storage.keeper.onWritableAgain(() => this.#scheduler.startAgain())
    storage.shared?.onLost((why) => void this.#endFenced(why))
    await this.#schedules.recover()
    await this.#answer()
    runtime.pool.controlPort = server.port
    await storage.shared?.serve(advertisedUrl(this.#config.advertise, server.url), {
      adopted: (graph, toKillRemotely) => this.#adopt(graph, toKillRemotely),
      callbacks: (graphs, stored) => void callbacks.adopt(graphs, stored),
    })
    directory.keep()
    storage.keeper.flush() // what the end of the last run changed is told before it changes again
    this.#announce(earlierRun)
    callbacks.start()
    this.#host.access.tokens?.watch()
    this.#schedules.start()
    this.#scheduleFiles.start()
    runtime.orphans.start()
    runtime.removals.start()
    void runCooperatively(this.#resumeGraphs())
  }

  /** Lets attempts finish, writes the last state, answers open requests, exits. A second call stops waiting for attempts. */
  async stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#isDraining) {
      this.#scheduler.interrupt()
      return
    }
    this.#isDraining = true
    this.#host.log.info('stopping', { signal })
    this.#schedules.stop()
    this.#scheduleFiles.stop()
    this.#host.access.tokens?.stop()
    await this.#scheduler.stop(this.#config.shutdownTimeout)
    const mcpServersEnded = this.#endMcpServers()
    this.#stopping.abort()
    this.#parts.callbacks.stop()
    const hasLastState = await this.#writeLastState()
    if (hasLastState) {
      await Promise.all([this.#host.server.stop(LAST_ANSWERS_MS), mcpServersEnded, this.#parts.tracing?.stop()])
      await this.#parts.audit?.close()
      this.#host.log.info('stopped')
    }
    await this.#exit(hasLastState ? 0 : 1)
  }

  /** Ends the service for an error that no caller and no attempt takes: its memory cannot be relied on any more. */
  failed(error: unknown): void {
    this.#host.log.error('an error was not caught', { cause: stackOf(error) })
    this.#endAfterFault(`an error was not caught: ${messageOf(error)}`)
  }

  #endAfterFault(fault: string): void {
    if (this.#hasFault) return
    this.#hasFault = true
    this.#isDraining = true
    void exitAfterFault(fault, this.#host.log, this.#parts.storage.keeper, (code) => this.#exit(code))
  }

  /** Other replicas run the graphs: ends processes of this machine, and leaves attempts in other services to them. */
  async #endFenced(why: string): Promise<void> {
    if (this.#hasFault) return
    this.#hasFault = true
    this.#isDraining = true
    writeSync(2, `taskmill-control: ${why}; this replica ends\n`)
    await Promise.race([this.#scheduler.stop(0), Bun.sleep(this.#abandonAfterMs)])
    await this.#exit(FENCED_EXIT_CODE)
  }

  async #exit(code: number): Promise<void> {
    await this.#parts.runtime.child?.stop()
    await this.#host.exit(code)
  }

  /** Ends the processes of an earlier run that was killed, before their tasks run again. */
  async #endLeftovers({ hasJournal, ...earlierRun }: EarlierRun): Promise<void> {
    const { mcp, serviceId } = this.#parts
    const processes = [...earlierRun.processes, ...mcp.processes.earlier]
    this.#host.progress.begin('ending what an earlier run left running')
    if (hasJournal) await endLeftovers(processes, serviceId, this.#config.killGrace, this.#host.log)
    mcp.processes.forgetEarlier()
  }

  /** Has other services end the attempts of tasks that an earlier run cancelled, and remove those of deleted graphs. */
  #settleElsewhere({ toKillRemotely, toForget }: EarlierRun): void {
    for (const task of toKillRemotely) this.#scheduler.killRemote(task, task.rare.handle!)
    for (const task of toForget) this.#parts.storage.store.onForgotten(task)
  }

  /** Continues a graph of a replica that is gone. */
  #adopt(graph: Graph, toKillRemotely: readonly Task[]): void {
    for (const task of toKillRemotely) this.#scheduler.killRemote(task, task.rare.handle!)
    this.#scheduler.cache.fill([graph])
    if (graph.live > 0) this.#scheduler.resume(graph)
  }

  /** Answers requests, once the runtime service does that this service has started. */
  async #answer(): Promise<void> {
    const { runtime, storage } = this.#parts
    const { progress, server, signals } = this.#host
    progress.begin('waiting for the runtime service')
    try {
      if (runtime.child !== undefined) await signals.unlessStopped(runtime.child.ready(signals.duringStart))
      signals.duringStart.throwIfAborted()
      serveApp(this.#app, server)
    } catch (error) {
      await storage.keeper.abandon()
      throw error
    }
  }

  #announce({ graphCount, cutBytes }: EarlierRun): void {
    const { access, log, server } = this.#host
    const found = { recovered_graphs: graphCount, cut_journal_bytes: cutBytes }
    announce(server.url, access, found, log)
  }

  /** In steps: there may be many graphs, and requests are answered already. */
  *#resumeGraphs(): Steps<void> {
    for (const graph of this.#parts.storage.store.graphs) {
      if (graph.acceptedSeq > 0) return // it and all that follow were accepted by this run
      if (graph.live > 0) this.#scheduler.resume(graph)
      yield
    }
  }

  /** False when the disk does not take it: the journal still holds what the packs lack. */
  async #writeLastState(): Promise<boolean> {
    try {
      await this.#parts.storage.keeper.stop()
      return true
    } catch (error) {
      const isShared = this.#parts.storage.shared !== undefined
      const message = isShared ? 'cannot keep the last changes in the database' : 'cannot write the last snapshot'
      this.#host.log.error(message, { cause: String(error) })
      return false
    }
  }

  async #endMcpServers(): Promise<void> {
    await Promise.race([this.#parts.mcp.servers.close(), Bun.sleep(this.#abandonAfterMs)])
  }
}
