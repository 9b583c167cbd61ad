/**
 * Runs the schedules: submits their graphs when they are due, and follows these to their ends.
 *
 * The rules (`rules/schedule.ts`) say what is due and what follows. Here are the clock, and what is kept. How far a schedule
 * is goes to where graphs are kept with the graph that it submits, all or nothing: a kill leaves both or neither, so each due
 * time is settled once. What changes a schedule waits for the change before it, and is made again if another replica was
 * first. Of the replicas that share a database, one submits the graphs of a schedule; others do once that one is gone.
 *
 * The times are those of a clock that may jump, also while the machine sleeps. So it is read at least every `MAX_TIMER_MS`.
 */
import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import { MAX_KEPT_RUNS } from '../../shared/contract/schedule-words.ts'
import { SHOWN_RUNS } from '../../shared/contract/schedules.ts'
import type { Log } from '../../shared/logs/log.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Delivery } from '../log/kept-callbacks.ts'
import {
  type KeptSchedule,
  type KeptSchedules,
  Moved,
  newProgress,
  type ScheduleChange,
} from '../log/kept-schedules.ts'
import {
  type DueTimes,
  ended,
  type KeptRun,
  look,
  nextStep,
  ON_TIME_MS,
  refused,
  runningAgain,
  type ScheduleDefinition,
  type ScheduleProgress,
  skipped,
  submissionTime,
  submitted,
  withdrawn,
} from '../rules/schedule.ts'
import type { Graph } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import { failureCallback } from './failure-callback.ts'
import { scheduledGraph } from './scheduled-graph.ts'

/**
 * Milliseconds between two looks at the clock, at graphs of other replicas that have not ended, and before a graph is
 * submitted again that the service had no room for.
 */
const MAX_TIMER_MS = 10_000

/** Milliseconds until a start asks again for the schedules. */
const RECOVER_AGAIN_MS = 100

/** Times that a change is made while other replicas are first. */
const MAX_TRIES = 20

/** How the graph of a schedule ended; `gone` if nobody knows. */
export interface GraphEnd {
  readonly state: NonNullable<KeptRun['state']>
  /** Absent if it is gone. */
  readonly at?: number
}

/** What a schedule does, as a caller may do it. The graph may be at another replica. */
export interface ScheduleVerbs {
  /** Resolves once the graph is kept with what `changeOf` returns. Throws `ServiceError`, and `Moved`. */
  submit(body: Uint8Array, changeOf: (graph: Graph) => ScheduleChange): Promise<Graph>
  cancelGraph(id: string): Promise<void>
  deleteGraph(id: string): Promise<void>
  /** Undefined while the graph has not ended. Rejects with 503. */
  endOf(id: string): Promise<GraphEnd | undefined>
  /** Sends callbacks, each id once. Resolves when they are kept. Rejects with 503. */
  tell(callbacks: readonly Delivery[]): Promise<void>
}

export interface SchedulesOptions {
  readonly store: Pick<TaskStore, 'graph' | 'watch'>
  readonly kept: KeptSchedules
  readonly maxSchedules: number
  readonly log: Log
}

export interface Schedule extends KeptSchedule {
  readonly name: string
  readonly times: DueTimes
}

export class Schedules {
  readonly #options: SchedulesOptions
  readonly #schedules = new Map<string, Schedule>()
  /** When to look again at each, in milliseconds since 1970. Absent: now. */
  readonly #nextLooks = new Map<string, number>()
  /** For each name the end of what changes it. */
  readonly #turns = new Map<string, Promise<unknown>>()
  /** For each name the graphs that were refused, and that may still count as submitted. */
  readonly #refused = new Map<string, Set<string>>()
  #verbs: ScheduleVerbs | undefined
  #timer: Timer | undefined
  #isStarted = false
  #isStopped = false
  #reading: Promise<void> | undefined
  #isRung = false

  constructor(options: SchedulesOptions) {
    this.#options = options
  }

  get all(): readonly Schedule[] {
    return [...this.#schedules.values()]
  }

  get(name: string): Schedule | undefined {
    return this.#schedules.get(name)
  }

  get #kept(): KeptSchedules {
    return this.#options.kept
  }

  /** Milliseconds since 1970, in the clock that counts for due times. */
  get now(): number {
    return this.#kept.now()
  }

  use(verbs: ScheduleVerbs): void {
    this.#verbs = verbs
  }

  /**
   * Finds the schedules of an earlier run, and of other replicas. Nothing is due yet. A database that is away is asked again: if it
   * stays away, the lease of this replica ends, and the replica with it.
   */
  async recover(): Promise<void> {
    while (!this.#isStopped) {
      try {
        return await this.fresh()
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        await Bun.sleep(RECOVER_AGAIN_MS)
      }
    }
  }

  /** From now on, graphs are submitted. */
  start(): void {
    this.#isStarted = true
    this.#options.store.watch((change) => {
      if (change.kind === 'graph-ended' || change.kind === 'tasks-retried') void this.#noteEnd(change.graph)
      // Whose end was noted is the end of its graph, too: this finds a graph whose tasks were all deleted.
      if (change.kind === 'graph-retired' && this.#isRunning(change.graph)) void this.#noteEnd(change.graph)
    })
    this.#kept.onChange = () => void this.#readSoon()
    this.#wake()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#kept.onChange = () => {}
  }

  /** Reads what other replicas have changed: of all schedules, or of one. Rejects with 503. */
  async fresh(name?: string): Promise<void> {
    const known = new Map(this.all.map((schedule) => [schedule.name, schedule.version]))
    const reading = this.#kept.read(known, name)
    if (reading === undefined) return
    const found = await reading
    if (found.size === 0) return
    const { dueTimes } = await import('../rules/schedule-times.ts')
    for (const [name, kept] of found) {
      if (this.#schedules.get(name)?.version !== known.get(name)) continue // it was changed here meanwhile
      if (kept === undefined) this.#forget(name)
      else this.#take({ ...kept, name, times: dueTimes(kept.definition.fields, kept.definition.since) })
    }
  }

  /** Reads, and looks at the schedules then. Rings come faster than answers. */
  async #readSoon(): Promise<void> {
    this.#isRung = true
    this.#reading ??= (async () => {
      while (this.#isRung && !this.#isStopped) {
        this.#isRung = false
        await this.fresh().catch(() => {}) // the next ring, or the look at a schedule, reads it
        this.#nextLooks.clear()
        this.#wake()
      }
      this.#reading = undefined
    })()
    await this.#reading
  }

  /** Makes `change` to the newest state once all earlier changes of the schedule `name` are made. Rejects with 503. */
  change<T>(name: string, change: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(name) ?? Promise.resolve()
    const result = before.then(() => this.#tryToChange(name, change))
    const over = result.catch(() => {})
    this.#turns.set(name, over)
    void over.then(() => {
      if (this.#turns.get(name) === over) this.#turns.delete(name)
    })
    return result
  }

  async #tryToChange<T>(name: string, change: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await this.fresh(name)
      try {
        return await change()
      } catch (error) {
        if (!(error instanceof Moved)) throw error
        if (tries === MAX_TRIES)
          throw new ServiceError(503, `other replicas change the schedule ${name}; try again later`)
      }
    }
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
    return { name, definition, progress: next, times, version: known?.version ?? 0 }
  }

  /** Throws 409 if there are too many. Called within `change`. */
  async put(name: string, definition: ScheduleDefinition, times: DueTimes, isGoingOn: boolean): Promise<Schedule> {
    const schedule = await this.#keep(this.#schedules.get(name), this.wouldBe(name, definition, times, isGoingOn))
    this.#wake()
    return schedule
  }

  /** Called within `change`. The graphs of the schedule stay. */
  async delete({ name }: Schedule): Promise<void> {
    await this.#tellFailures(name).catch(() => {}) // what nobody can keep now goes with the schedule
    const schedule = this.#schedules.get(name)!
    await this.#kept.keep(schedule.name, schedule, undefined)
    this.#forget(schedule.name)
  }

  async #keep(known: Schedule | undefined, next: Schedule): Promise<Schedule> {
    const version = this.#kept.keep(next.name, known, next)
    return this.#take({ ...next, version: typeof version === 'number' ? version : await version })
  }

  #take(schedule: Schedule): Schedule {
    this.#schedules.set(schedule.name, schedule)
    this.#nextLooks.delete(schedule.name)
    return schedule
  }

  #forget(name: string): void {
    this.#schedules.delete(name)
    this.#nextLooks.delete(name)
  }

  /** Submits the graph of the schedule, because a caller asked for it. Called within `change`. */
  async trigger(schedule: Schedule): Promise<Graph> {
    return (await this.#submit(schedule)).graph
  }

  /** Submits the graph of the schedule. Returns what the schedule is then. */
  async #submit(schedule: Schedule, due?: number): Promise<{ readonly graph: Graph; readonly schedule: Schedule }> {
    const { name, definition, version } = schedule
    let progress = schedule.progress
    let graph: Graph
    let graphId = ''
    try {
      graph = await this.#verbs!.submit(scheduledGraph(name, definition, due), ({ id, createdAt }) => {
        graphId = id
        progress = submitted(schedule.progress, { graph_id: id, ...(due !== undefined && { due }), at: createdAt })
        return { name, version, progress, ...(due !== undefined && { due }) }
      })
    } catch (error) {
      if (!(error instanceof Moved) && graphId !== '') await this.#withdraw(name, graphId)
      throw error
    }
    this.#options.log.info('schedule submitted a graph', {
      ...{ schedule: name, trace_id: graph.traceId, graph_id: graph.id },
      ...(due !== undefined && { due: isoTime(due) }),
    })
    return { graph, schedule: this.#take({ ...schedule, progress, version: this.#kept.after(version) }) }
  }

  /** A graph of the schedule was refused. With a database it may have been kept before: its schedule goes back then. */
  async #withdraw(name: string, graphId: string): Promise<void> {
    const graphIds = this.#refused.get(name) ?? new Set()
    this.#refused.set(name, graphIds.add(graphId)) // until that is certain
    await this.#tryToChange(name, async () => {
      const schedule = this.#schedules.get(name)
      if (schedule === undefined) return
      const progress = withdrawn(schedule.progress, graphId)
      if (progress !== schedule.progress) await this.#keep(schedule, { ...schedule, progress })
    })
    graphIds.delete(graphId)
    if (graphIds.size === 0) this.#refused.delete(name)
  }

  #isRunning({ id, options }: Graph): boolean {
    const runs = this.#schedules.get(options.labels?.schedule ?? '')?.progress.runs ?? []
    return runs.some((run) => run.graph_id === id && run.state === undefined)
  }

  async #noteEnd({ id, options }: Graph): Promise<void> {
    const name = options.labels?.schedule
    if (name === undefined || this.#isStopped) return
    // Whoever submits its graphs looks at them, too.
    await this.change(name, () => this.#noteEnds(name, [id])).catch(() => {})
    this.#wake()
  }

  /**
   * Notes which of these graphs of the schedule have ended, and which run again after a retry. Deletes those that it keeps no
   * longer.
   */
  async #noteEnds(name: string, graphIds: readonly string[]): Promise<void> {
    const schedule = this.#schedules.get(name)
    if (schedule === undefined) return
    const { fields } = schedule.definition
    const { keep = SHOWN_RUNS } = fields
    const { store } = this.#options
    let progress = runningAgain(schedule.progress, (id) => (store.graph(id)?.live ?? 0) > 0)
    for (const { graph_id: graphId, state } of progress.runs) {
      if (!graphIds.includes(graphId)) continue
      const end = await this.#verbs!.endOf(graphId)
      if (end === undefined || end.state === state) continue
      progress = ended(fields, progress, { graphId, at: this.now, maxRuns: Math.min(keep, MAX_KEPT_RUNS), ...end })
    }
    if (progress === schedule.progress) return
    await this.#keep(schedule, { ...schedule, progress })
    if (fields.keep !== undefined) await this.#removeOld(schedule.progress, progress)
  }

  /** Deletes the ended graphs that are no longer among the runs. */
  async #removeOld({ runs }: ScheduleProgress, { runs: kept }: ScheduleProgress): Promise<void> {
    const ids = new Set(kept.map(({ graph_id }) => graph_id))
    for (const { graph_id: id } of runs) if (!ids.has(id)) await this.#verbs!.deleteGraph(id).catch(() => {}) // it is gone, or nothing is kept now: retention removes it
  }

  /** Has the schedules looked at soon. */
  #wake(): void {
    clearTimeout(this.#timer)
    if (this.#isStopped || !this.#isStarted) return
    let next = Number.POSITIVE_INFINITY
    for (const name of this.#schedules.keys())
      if (this.#kept.isHere(name)) next = Math.min(next, this.#nextLooks.get(name) ?? 0)
    if (next === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(0, next - this.now), MAX_TIMER_MS))
  }

  #look(): void {
    for (const { name } of this.all) {
      if (!this.#kept.isHere(name) || (this.#nextLooks.get(name) ?? 0) > this.now) continue
      this.#nextLooks.set(name, Number.POSITIVE_INFINITY) // until its turn has come
      void this.change(name, () => this.#settle(name))
        .catch(() => this.#nextLooks.set(name, this.now + MAX_TIMER_MS)) // nothing can be kept now
        .then(() => this.#wake())
    }
    this.#wake()
  }

  /** Does what is due. */
  async #settle(name: string): Promise<void> {
    for (const graphId of this.#refused.get(name) ?? []) await this.#withdraw(name, graphId)
    await this.#noteEnds(name, this.#runningElsewhere(name))
    const found = this.#schedules.get(name)
    if (this.#isStopped || found === undefined || !this.#kept.isHere(name)) return
    let next = Number.POSITIVE_INFINITY
    if (found.definition.fields.paused !== true) {
      const { schedule, isRefusedForNow } = await this.#submitDue(found)
      const due = schedule.times.next(schedule.progress.settled)
      if (due !== undefined) next = submissionTime(schedule.definition.fields, name, due)
      if (isRefusedForNow) next = Math.min(next, this.now + MAX_TIMER_MS)
    }
    if (this.#runningElsewhere(name).length > 0) next = Math.min(next, this.now + MAX_TIMER_MS)
    await this.#tellFailures(name)
    this.#nextLooks.set(name, next)
  }

  /**
   * Hands over the callbacks of what failed. They are kept before the schedule forgets it: after a kill in between they are handed
   * over again, under the same ids.
   */
  async #tellFailures(name: string): Promise<void> {
    const schedule = this.#schedules.get(name)
    if (schedule?.progress.untold === undefined) return
    const { untold, ...progress } = schedule.progress
    const { on_failure } = schedule.definition.fields
    if (on_failure !== undefined)
      await this.#verbs!.tell(untold.map((failure) => failureCallback(name, on_failure, failure)))
    await this.#keep(schedule, { ...schedule, progress })
  }

  /** Returns what the schedule is then. `isRefusedForNow`: the service does not take graphs now, and a due time waits. */
  async #submitDue(found: Schedule): Promise<{ readonly schedule: Schedule; readonly isRefusedForNow: boolean }> {
    const { name, definition, times } = found
    const { fields } = definition
    let schedule = found
    let progress = look({ name, fields, times }, schedule.progress, this.now)
    this.#tellMissed(schedule, progress)
    let isRefusedForNow = false
    while (!isRefusedForNow && !this.#isStopped) {
      const step = nextStep(fields.overlap, progress)
      const due = progress.waiting[0]
      if (step === 'rest' || due === undefined) break
      if (step === 'skip') {
        progress = skipped(progress)
        this.#options.log.warn('schedule skipped a due time', { schedule: name, due: isoTime(due) })
        continue
      }
      try {
        if (step === 'cancel')
          for (const { graph_id, state } of progress.runs)
            if (state === undefined) await this.#verbs!.cancelGraph(graph_id)
        schedule = (await this.#submit({ ...schedule, progress }, due)).schedule
        progress = schedule.progress
      } catch (error) {
        if (error instanceof Moved) throw error
        const now = this.#schedules.get(name)
        if (now !== undefined && now.version !== schedule.version) {
          schedule = now
          progress = now.progress
        }
        if (progress.waiting[0] !== due) break // another replica has changed it
        isRefusedForNow = this.#mayWait(schedule, due, error)
        if (!isRefusedForNow) progress = this.#refusedFor(error, schedule, progress)
      }
    }
    if (progress !== schedule.progress) schedule = await this.#keep(schedule, { ...schedule, progress })
    return { schedule, isRefusedForNow }
  }

  #mayWait({ name, definition }: Schedule, due: number, error: unknown): boolean {
    const isForNow = error instanceof ServiceError && error.status === 503
    const isLate = this.now - submissionTime(definition.fields, name, due) > ON_TIME_MS
    return isForNow && (!isLate || (definition.fields.catch_up ?? 'none') !== 'none')
  }

  #refusedFor(error: unknown, { name, definition }: Schedule, progress: ScheduleProgress): ScheduleProgress {
    this.#options.log.error('schedule could not submit its graph', {
      ...{ schedule: name, due: isoTime(progress.waiting[0]!), cause: messageOf(error) },
    })
    return refused(definition.fields, progress, { error: messageOf(error), at: this.now })
  }

  /** Graphs of the schedule that do not run here, as far as anybody noted. */
  #runningElsewhere(name: string): string[] {
    const { store } = this.#options
    const runs = this.#schedules.get(name)?.progress.runs ?? []
    return runs.flatMap(({ graph_id: id, state }) => {
      const graph = state === undefined ? store.graph(id) : undefined
      return state === undefined && (graph === undefined || graph.endedAt !== undefined) ? id : []
    })
  }

  #tellMissed({ name, progress }: Schedule, { missed }: ScheduleProgress): void {
    const more = missed - progress.missed
    if (more > 0) this.#options.log.warn('schedule missed due times', { schedule: name, missed: more })
  }
}

/** Numbers of schedules, for metrics. */
export const scheduleCounts = (all: readonly Schedule[]) => {
  const paused = all.filter(({ definition }) => definition.fields.paused === true).length
  return { active: all.length - paused, paused }
}
