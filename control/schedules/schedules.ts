/**
 * Runs the schedules: submits their graphs when they are due, and follows these to their ends.
 *
 * The rules (`rules/schedule.ts`) say what is due and what follows. Here are the clock, and what is kept. How far a schedule
 * is goes into the journal with the graph that it submits, in one frame: a kill leaves both or neither, so each due time is
 * settled once. What changes a schedule waits for the change before it.
 *
 * The times are those of the wall clock, which may jump, also while the machine sleeps. So it is read at least every
 * `MAX_TIMER_MS`.
 */
import { badRequest, messageOf, ServiceError } from '../../shared/contract/errors.ts'
import { MAX_KEPT_RUNS } from '../../shared/contract/schedule-words.ts'
import { SHOWN_RUNS } from '../../shared/contract/schedules.ts'
import type { Log } from '../../shared/logs/log.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { type KeptSchedules, progressNote } from '../log/kept-schedules.ts'
import type { NoteRow } from '../log/notes.ts'
import {
  type DueTimes,
  ended,
  type KeptRun,
  look,
  nextStep,
  ON_TIME_MS,
  refused,
  type ScheduleDefinition,
  type ScheduleProgress,
  skipped,
  submissionTime,
  submitted,
} from '../rules/schedule.ts'
import type { Graph } from '../task/graph.ts'
import { endState } from '../task/graph-summary.ts'
import type { TaskStore } from '../task/task-store.ts'
import { scheduledGraph } from './scheduled-graph.ts'

/** Milliseconds between two looks at the clock, and before a graph is submitted again that the service had no room for. */
const MAX_TIMER_MS = 10_000

/** What a schedule does, as a caller may do it. */
export interface ScheduleVerbs {
  /** Resolves with what `noteOf` was given, once graph and note are on disk. Throws `ServiceError`. */
  submit(body: Uint8Array, noteOf: (graph: Graph) => NoteRow): Promise<Graph>
  cancelGraph(id: string): Promise<unknown>
  deleteGraph(id: string): Promise<void>
}

export interface SchedulesOptions {
  readonly store: TaskStore
  /** Undefined with a database. */
  readonly kept: KeptSchedules | undefined
  readonly maxSchedules: number
  readonly log: Log
}

export interface Schedule {
  readonly name: string
  definition: ScheduleDefinition
  progress: ScheduleProgress
  times: DueTimes
  /** When to look again: milliseconds since 1970. */
  nextLook: number
}

export class Schedules {
  readonly #options: SchedulesOptions
  readonly #schedules = new Map<string, Schedule>()
  /** The schedules of graphs that have not ended. */
  readonly #running = new Map<string, string>()
  /** For each name the end of what changes it. */
  readonly #turns = new Map<string, Promise<unknown>>()
  #verbs: ScheduleVerbs | undefined
  #timer: Timer | undefined
  #isStopped = false

  constructor(options: SchedulesOptions) {
    this.#options = options
  }

  get all(): readonly Schedule[] {
    return [...this.#schedules.values()]
  }

  get(name: string): Schedule | undefined {
    return this.#schedules.get(name)
  }

  /** Throws 400 with a database. */
  assertKept(): void {
    if (this.#options.kept === undefined)
      throw badRequest('schedules: services with --database have none (use a service with a data directory alone)')
  }

  get #kept(): KeptSchedules {
    this.assertKept()
    return this.#options.kept!
  }

  use(verbs: ScheduleVerbs): void {
    this.#verbs = verbs
  }

  /** Finds the schedules of an earlier run. Nothing is due yet. */
  async recover(): Promise<void> {
    const { kept } = this.#options
    if (kept === undefined || kept.found.definitions.size === 0) return
    const { dueTimes } = await import('../rules/schedule-times.ts')
    for (const [name, definition] of kept.found.definitions) {
      const progress = kept.found.progress.get(name) ?? newProgress(definition.since)
      const times = dueTimes(definition.fields, definition.since)
      this.#schedules.set(name, { name, definition, progress, times, nextLook: 0 })
    }
  }

  /** From now on, graphs are submitted. */
  start(): void {
    this.#options.store.watch((change) => {
      if (change.kind === 'graph-ended' || change.kind === 'graph-retired') this.#graphEnded(change.graph)
    })
    for (const { name, progress } of this.all)
      for (const { graph_id: id, state } of progress.runs) if (state === undefined) this.#follow(name, id)
    this.#look()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Calls `change` once all earlier changes of the schedule `name` are made. */
  inTurn<T>(name: string, change: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(name) ?? Promise.resolve()
    const result = before.then(change)
    const over = result.catch(() => {})
    this.#turns.set(name, over)
    void over.then(() => {
      if (this.#turns.get(name) === over) this.#turns.delete(name)
    })
    return result
  }

  /** What `put` would make, which changes nothing. Throws 409 if there are too many. */
  wouldBe(name: string, definition: ScheduleDefinition, times: DueTimes, isGoingOn: boolean): Schedule {
    const { maxSchedules } = this.#options
    const known = this.#schedules.get(name)
    if (known === undefined && this.#schedules.size >= maxSchedules)
      throw new ServiceError(
        409,
        `there are ${maxSchedules} schedules already (--max-schedules): delete one, or raise the limit`,
      )
    const settled = definition.updated_at
    const progress = known?.progress ?? newProgress(settled)
    const next = isGoingOn ? progress : { ...progress, settled, waiting: [] }
    return { name, definition, progress: next, times, nextLook: 0 }
  }

  /** Throws 409 if there are too many. Called in turn. */
  put(name: string, definition: ScheduleDefinition, times: DueTimes, isGoingOn: boolean): Schedule {
    const { progress, ...made } = this.wouldBe(name, definition, times, isGoingOn)
    const schedule = this.#schedules.get(name) ?? { ...made, progress: newProgress(definition.updated_at) }
    Object.assign(schedule, made)
    this.#kept.define(name, definition)
    this.#advance(schedule, progress)
    this.#schedules.set(name, schedule)
    this.#wake()
    return schedule
  }

  /** Called in turn. The graphs of the schedule stay. */
  delete(name: string): void {
    for (const { graph_id } of this.#schedules.get(name)?.progress.runs ?? []) this.#running.delete(graph_id)
    this.#schedules.delete(name)
    this.#kept.define(name, undefined)
    this.#kept.advance(name, undefined)
  }

  /** Submits the graph of the schedule, for the due time that waits, or because a caller asked for it. Called in turn. */
  async submit(schedule: Schedule, due?: number): Promise<Graph> {
    const { name, definition } = schedule
    let progress = schedule.progress
    const graph = await this.#verbs!.submit(scheduledGraph(name, definition, due), ({ id, createdAt }) => {
      const run: KeptRun = { graph_id: id, ...(due !== undefined && { due }), at: createdAt }
      progress = submitted(schedule.progress, run)
      return progressNote(name, progress)
    })
    schedule.progress = progress
    this.#options.log.info('schedule submitted a graph', {
      ...{ schedule: name, trace_id: graph.traceId, graph_id: graph.id },
      ...(due !== undefined && { due: isoTime(due) }),
    })
    this.#follow(name, graph.id)
    return graph
  }

  #advance(schedule: Schedule, progress: ScheduleProgress): void {
    if (progress === schedule.progress && this.#schedules.has(schedule.name)) return
    schedule.progress = progress
    this.#kept.advance(schedule.name, progress)
  }

  /** The graph may have ended already. */
  #follow(name: string, graphId: string): void {
    this.#running.set(graphId, name)
    const graph = this.#options.store.graph(graphId)
    if (graph === undefined || graph.endedAt !== undefined) void this.#noteEnd(name, graphId, graph)
  }

  #graphEnded(graph: Graph): void {
    const name = this.#running.get(graph.id)
    if (name !== undefined) void this.#noteEnd(name, graph.id, graph)
  }

  async #noteEnd(name: string, graphId: string, graph: Graph | undefined): Promise<void> {
    if (!this.#running.delete(graphId)) return
    const state: KeptRun['state'] & string = graph === undefined ? 'gone' : await runCooperatively(endState(graph))
    await this.inTurn(name, async () => {
      const schedule = this.#schedules.get(name)
      if (schedule === undefined) return
      const { keep = SHOWN_RUNS } = schedule.definition.fields
      const at = graph?.endedAt ?? Date.now()
      const end = { graphId, state, at, maxRuns: Math.min(keep, MAX_KEPT_RUNS) }
      const before = schedule.progress
      this.#advance(schedule, ended(before, end))
      if (schedule.definition.fields.keep !== undefined) await this.#removeOld(before, schedule.progress)
      schedule.nextLook = 0
    })
    this.#wake()
  }

  /** Deletes the ended graphs that are no longer among the runs. */
  async #removeOld({ runs }: ScheduleProgress, { runs: kept }: ScheduleProgress): Promise<void> {
    const ids = new Set(kept.map(({ graph_id }) => graph_id))
    for (const { graph_id: id } of runs) {
      if (ids.has(id) || this.#options.store.graph(id) === undefined) continue
      await this.#verbs!.deleteGraph(id).catch(() => {}) // the disk takes no writes: retention removes it
    }
  }

  /** Has the schedules looked at soon. */
  #wake(): void {
    clearTimeout(this.#timer)
    if (this.#isStopped) return
    let next = Number.POSITIVE_INFINITY
    for (const { nextLook } of this.#schedules.values()) next = Math.min(next, nextLook)
    if (next === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(0, next - Date.now()), MAX_TIMER_MS))
  }

  #look(): void {
    for (const schedule of this.all) {
      if (schedule.nextLook > Date.now()) continue
      schedule.nextLook = Number.POSITIVE_INFINITY // until its turn has come
      void this.inTurn(schedule.name, () => this.#settle(schedule)).then(() => this.#wake())
    }
    this.#wake()
  }

  /** Does what is due. */
  async #settle(schedule: Schedule): Promise<void> {
    const { name } = schedule
    const isGone = () => this.#isStopped || this.#schedules.get(name) !== schedule
    if (isGone() || schedule.definition.fields.paused === true) return
    const { fields } = schedule.definition
    const found = look({ name, fields, times: schedule.times }, schedule.progress, Date.now())
    this.#tellMissed(schedule, found)
    schedule.progress = found // kept with what follows
    let isRefusedForNow = false
    while (!isRefusedForNow && !isGone()) {
      const step = nextStep(fields.overlap, schedule.progress)
      const due = schedule.progress.waiting[0]
      if (step === 'rest' || due === undefined) break
      if (step === 'skip') {
        schedule.progress = skipped(schedule.progress)
        this.#options.log.warn('schedule skipped a due time', { schedule: name, due: isoTime(due) })
      } else isRefusedForNow = !(await this.#tryToSubmit(schedule, due, step === 'cancel'))
    }
    this.#kept.advance(name, schedule.progress)
    const next = schedule.times.next(schedule.progress.settled)
    const nextDue = next === undefined ? Number.POSITIVE_INFINITY : submissionTime(fields, name, next)
    schedule.nextLook = isRefusedForNow ? Math.min(nextDue, Date.now() + MAX_TIMER_MS) : nextDue
  }

  /** False if the service does not take graphs now, and the due time waits. */
  async #tryToSubmit(schedule: Schedule, due: number, isCancelling: boolean): Promise<boolean> {
    const { name, definition, progress } = schedule
    try {
      if (isCancelling)
        for (const { graph_id, state } of progress.runs)
          if (state === undefined) await this.#verbs!.cancelGraph(graph_id)
      await this.submit(schedule, due)
      return true
    } catch (error) {
      const isForNow = error instanceof ServiceError && error.status === 503
      const isLate = Date.now() - submissionTime(definition.fields, name, due) > ON_TIME_MS
      const mayWait = !isLate || (definition.fields.catch_up ?? 'none') !== 'none'
      if (isForNow && mayWait) return false
      schedule.progress = refused(schedule.progress, messageOf(error))
      this.#options.log.error('schedule could not submit its graph', {
        ...{ schedule: name, due: isoTime(due), cause: messageOf(error) },
      })
      return true
    }
  }

  #tellMissed({ name, progress }: Schedule, { missed }: ScheduleProgress): void {
    const more = missed - progress.missed
    if (more > 0) this.#options.log.warn('schedule missed due times', { schedule: name, missed: more })
  }
}

const newProgress = (settled: number): ScheduleProgress => ({ settled, waiting: [], missed: 0, skipped: 0, runs: [] })

/** Numbers of schedules, for metrics. */
export const scheduleCounts = (all: readonly Schedule[]) => {
  const paused = all.filter(({ definition }) => definition.fields.paused === true).length
  return { active: all.length - paused, paused }
}
