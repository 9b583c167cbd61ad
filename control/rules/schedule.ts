/**
 * The rules of a schedule: what has become due since the last look, and what follows. Pure.
 *
 * Each due time is settled once, in order, and the last settled one is kept. So no due time counts twice, whatever the
 * clock does: after it was set back, nothing is due until it passes that time again.
 */
import type { ScheduleFailureReason } from '../../shared/contract/callbacks.ts'
import { MAX_EVENT_ERROR_CHARACTERS } from '../../shared/contract/events.ts'
import type { CatchUp, Overlap } from '../../shared/contract/schedule-words.ts'
import type { ScheduleFields } from '../../shared/contract/schedules.ts'

/** A due time that passed at most so many milliseconds ago is no missed one: the service may just have restarted. */
export const ON_TIME_MS = 60_000

/** Due times of a schedule that wait, and missed ones that are caught up. */
export const MAX_WAITING_DUES = 100

/** Graphs of a schedule that run at a time. A further one is skipped. */
export const MAX_RUNNING = 100

/** Missed due times that one look counts. Each takes 0.3 ms with cron. */
export const MAX_COUNTED_DUES = 500

/** Failures of a schedule that still have to be told. Older ones are forgotten. */
export const MAX_UNTOLD = 100

/** Fields as put, without nulls. */
export type GivenFields = { readonly [F in keyof ScheduleFields]?: NonNullable<ScheduleFields[F]> }

export interface OwningFile {
  /** Its name in the directory. */
  readonly name: string
  /** Whether it says `paused`. If not, callers pause and resume the schedule. */
  readonly decidesPause: boolean
  /** Differs when what it says does. */
  readonly digest: string
}

/** A schedule as it is kept. Times are in milliseconds since 1970. */
export interface ScheduleDefinition {
  readonly fields: GivenFields
  /** The graph as put. */
  readonly graph: object
  /** The file in `--schedules-dir` that it is from. Absent: a caller has put it. */
  readonly file?: OwningFile
  /** Since when it has its due times: `every` counts from here. */
  readonly since: number
  readonly created_at: number
  readonly updated_at: number
}

export interface KeptRun {
  readonly graph_id: string
  /** Absent if a caller asked for it. */
  readonly due?: number
  readonly at: number
  /** `gone`: the graph was removed before its end was noted. Absent: it has not ended. */
  readonly state?: 'success' | 'failed' | 'cancelled' | 'gone'
}

/** What a callback of the schedule tells. Each schedule has at most one with the same reason, due time or graph, and time. */
export interface ScheduleFailure {
  readonly reason: ScheduleFailureReason
  readonly at: number
  /** Absent if a caller asked for the graph. */
  readonly due?: number
  /** Due times up to `due`. */
  readonly missed?: number
  readonly error?: string
  readonly graph_id?: string
}

/** How far a schedule is, as it is kept. */
export interface ScheduleProgress {
  /** Due times up to this one are settled. */
  readonly settled: number
  /** Due times whose graphs are still to be submitted. */
  readonly waiting: readonly number[]
  readonly missed: number
  readonly skipped: number
  readonly last_success?: number
  readonly last_error?: string
  /** Those that run, and the last ended ones. The oldest first. */
  readonly runs: readonly KeptRun[]
  /** Failures whose callbacks are still to be handed over. Absent if there are none. */
  readonly untold?: readonly ScheduleFailure[]
}

/** The due times of a schedule. */
export interface DueTimes {
  /** The first one later than `after`. */
  next(after: number): number | undefined
}

export const runningOf = ({ runs }: ScheduleProgress): number =>
  runs.reduce((count, { state }) => (state === undefined ? count + 1 : count), 0)

/** When the graph of a due time is submitted: the same at each look. */
export function submissionTime({ jitter = 0 }: GivenFields, name: string, due: number): number {
  return jitter === 0 ? due : due + Math.floor(fractionOf(`${name} ${due}`) * (jitter + 1))
}

/** Of the services `ids`, the one that submits the graphs of a schedule. Undefined if there are none. */
export const submitterOf = (name: string, ids: readonly number[]): number | undefined =>
  ids[Math.floor(fractionOf(name) * ids.length)]

/** From 0 to below 1: the same for the same text. */
function fractionOf(text: string): number {
  let hash = 0x811c9dc5 // FNV-1a
  for (const character of text) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b) // as MurmurHash3 ends: names alike are spread, too
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** The due times after `after` whose submission time is up to `now`: the newest, at most `MAX_COUNTED_DUES`. */
function passedDues(times: DueTimes, after: number, now: number, submission: (due: number) => number): number[] {
  const from = (start: number) => {
    const dues: number[] = []
    for (let due = times.next(start); due !== undefined && submission(due) <= now; due = times.next(due)) {
      dues.push(due)
      if (dues.length === MAX_COUNTED_DUES) break
    }
    return dues
  }
  const first = from(after)
  if (first.length < MAX_COUNTED_DUES) return first
  // More have passed: the newest are found from a time before now that doubles, in steps that stay small.
  let newest: number[] = []
  for (let ms = ON_TIME_MS; ms < now - after; ms *= 2) {
    const dues = from(now - ms)
    if (dues.length === MAX_COUNTED_DUES) break
    newest = dues
  }
  const [oldest = Number.POSITIVE_INFINITY] = newest
  return [...first.filter((due) => due < oldest), ...newest].slice(-MAX_COUNTED_DUES)
}

/** What has become due until `now`. Returns `progress` itself if nothing has. */
export function look(
  { name, fields, times }: { readonly name: string; readonly fields: GivenFields; readonly times: DueTimes },
  progress: ScheduleProgress,
  now: number,
): ScheduleProgress {
  const submission = (due: number) => submissionTime(fields, name, due)
  const passed = passedDues(times, progress.settled, now, submission)
  const newest = passed.at(-1)
  if (newest === undefined) return progress
  const isOnTime = now - submission(newest) <= ON_TIME_MS
  const wanted = wantedDues(fields.catch_up ?? 'none', passed, isOnTime)
  const room = MAX_WAITING_DUES - progress.waiting.length
  const kept = wanted.slice(0, room)
  const missed = passed.filter((due) => !kept.includes(due))
  const next = {
    ...progress,
    settled: newest,
    waiting: [...progress.waiting, ...kept],
    missed: progress.missed + missed.length,
  }
  const due = missed.at(-1)
  return due === undefined ? next : failing(fields, next, { reason: 'missed', at: now, due, missed: missed.length })
}

/** With a failure to tell, if the schedule has somebody to tell. */
function failing({ on_failure }: GivenFields, progress: ScheduleProgress, failure: ScheduleFailure): ScheduleProgress {
  if (on_failure === undefined) return progress
  return { ...progress, untold: [...(progress.untold ?? []), failure].slice(-MAX_UNTOLD) }
}

function wantedDues(catchUp: CatchUp, passed: readonly number[], isOnTime: boolean): readonly number[] {
  if (catchUp === 'all') return passed.slice(-MAX_WAITING_DUES)
  return catchUp === 'last' || isOnTime ? passed.slice(-1) : []
}

/** What to do about the first due time that waits. `cancel`: submit its graph, and cancel those that run. */
export type Step = 'rest' | 'skip' | 'submit' | 'cancel'

export function nextStep(overlap: Overlap = 'skip', progress: ScheduleProgress): Step {
  if (progress.waiting.length === 0) return 'rest'
  const running = runningOf(progress)
  if (running === 0) return 'submit'
  if (overlap === 'queue') return 'rest'
  if (overlap === 'skip' || running >= MAX_RUNNING) return 'skip'
  return overlap === 'cancel' ? 'cancel' : 'submit'
}

/** Without the first due time that waits. */
const withoutFirst = (progress: ScheduleProgress): ScheduleProgress => ({
  ...progress,
  waiting: progress.waiting.slice(1),
})

export const skipped = (progress: ScheduleProgress): ScheduleProgress => ({
  ...withoutFirst(progress),
  skipped: progress.skipped + 1,
})

/** The service refused the graph for `error` at `at`. */
export function refused(
  fields: GivenFields,
  progress: ScheduleProgress,
  { error, at }: { readonly error: string; readonly at: number },
): ScheduleProgress {
  const next = { ...withoutFirst(progress), missed: progress.missed + 1, last_error: error }
  const due = progress.waiting[0]!
  return failing(fields, next, { reason: 'refused', at, due, error: error.slice(0, MAX_EVENT_ERROR_CHARACTERS) })
}

/** The graph of the first due time that waits was accepted; or one that a caller asked for, which has no due time. */
export function submitted({ last_error: _, ...progress }: ScheduleProgress, run: KeptRun): ScheduleProgress {
  const rest = run.due === undefined ? progress : withoutFirst(progress)
  return { ...rest, runs: [...rest.runs, run] }
}

/** The graph was submitted and refused after all. Its due time waits again. */
export function withdrawn(progress: ScheduleProgress, graphId: string): ScheduleProgress {
  const run = progress.runs.find(({ graph_id }) => graph_id === graphId)
  if (run === undefined) return progress
  const waiting = run.due === undefined ? progress.waiting : [run.due, ...progress.waiting]
  return { ...progress, waiting, runs: progress.runs.filter((each) => each !== run) }
}

/** Graphs that have not ended by now run again, after a retry in place. */
export function runningAgain(progress: ScheduleProgress, isLive: (graphId: string) => boolean): ScheduleProgress {
  const isAgain = ({ graph_id, state }: KeptRun) => state !== undefined && isLive(graph_id)
  if (!progress.runs.some(isAgain)) return progress
  const runs = progress.runs.map((run) => {
    const { state: _, ...running } = run
    return isAgain(run) ? running : run
  })
  return { ...progress, runs }
}

/** A graph has ended at `at`. Of the ended runs, `maxRuns` are kept. */
export function ended(
  fields: GivenFields,
  progress: ScheduleProgress,
  {
    graphId,
    state,
    at,
    maxRuns,
  }: { graphId: string; state: NonNullable<KeptRun['state']>; at: number; maxRuns: number },
): ScheduleProgress {
  const runs = progress.runs.map((run) => (run.graph_id === graphId ? { ...run, state } : run))
  const over = runs.filter((run) => run.state !== undefined)
  const forgotten = new Set(over.slice(0, Math.max(0, over.length - maxRuns)))
  const next = {
    ...progress,
    ...(state === 'success' && { last_success: at }),
    runs: runs.filter((run) => !forgotten.has(run)),
  }
  if (state !== 'failed') return next
  const due = progress.runs.find(({ graph_id }) => graph_id === graphId)?.due
  return failing(fields, next, { reason: 'failed', at, ...(due !== undefined && { due }), graph_id: graphId })
}

const TIMING = ['cron', 'every', 'at', 'timezone', 'start', 'end'] as const

/** Whether the due times are the same, so that a schedule that is put again goes on where it was. */
export const hasSameTimes = (a: GivenFields, b: GivenFields): boolean => TIMING.every((name) => a[name] === b[name])
