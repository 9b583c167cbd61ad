/** Lists schedules, and shows one. */
import { ServiceError } from '../../shared/contract/errors.ts'
import {
  type Schedule as ScheduleAnswer,
  type ScheduleFile,
  type ScheduleRun,
  type ScheduleSummary,
  SHOWN_RUNS,
  SHOWN_TIMES,
} from '../../shared/contract/schedules.ts'
import { newTraceId } from '../../shared/logs/trace.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { noOwner } from '../log/no-owner.ts'
import { runningOf } from '../rules/schedule.ts'
import type { Schedule } from '../schedules/schedules.ts'
import type { OperationParts } from './parts.ts'

/** In the order of their names. */
export async function listSchedules({ schedules }: OperationParts): Promise<readonly ScheduleSummary[]> {
  await schedules.fresh()
  const all = schedules.all.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return all.map((schedule) => summaryOf(schedule, 1))
}

export async function getSchedule(parts: OperationParts, name: string): Promise<ScheduleAnswer> {
  await parts.schedules.fresh(name)
  return scheduleAnswer(knownSchedule(parts, name))
}

/** The files of `--schedules-dir`, by name: those of the replica whose directory counts. Rejects with 503. */
export async function listScheduleFiles({ scheduleFiles, keeper }: OperationParts): Promise<readonly ScheduleFile[]> {
  const { filesOf, readsFiles } = keeper.schedules
  if (readsFiles || filesOf === undefined) return scheduleFiles.all
  const { live } = await keeper.others.all()
  const replica = live.find(({ id }) => id === filesOf)
  if (replica === undefined) throw noOwner(`replica ${filesOf}, which reads the files of schedules, is gone`)
  const headers = new Headers({ 'x-trace-id': newTraceId() })
  const answer = await keeper.others.ask(replica, { method: 'GET', path: '/schedule-files', headers })
  if (!answer.ok) throw noOwner(`replica ${filesOf} answers ${answer.status} about the files of schedules`)
  return (await answer.json()) as readonly ScheduleFile[]
}

/** Throws 404. */
export function knownSchedule({ schedules }: OperationParts, name: string): Schedule {
  const schedule = schedules.get(name)
  if (schedule === undefined) throw new ServiceError(404, `schedule not found: ${name}`)
  return schedule
}

export function scheduleAnswer(schedule: Schedule): ScheduleAnswer {
  const { graph, fields } = schedule.definition
  const { params, on_failure } = fields
  return {
    ...summaryOf(schedule, SHOWN_TIMES),
    ...(params !== undefined && { params }),
    ...(on_failure !== undefined && { on_failure }),
    graph,
    runs: schedule.progress.runs
      .slice(-SHOWN_RUNS)
      .reverse()
      .map(
        ({ graph_id, due, at, state = 'running' }): ScheduleRun => ({
          graph_id,
          ...(due !== undefined && { due: isoTime(due) }),
          at: isoTime(at),
          ...(state !== 'gone' && { state }),
        }),
      ),
  }
}

function summaryOf({ name, definition, progress, times }: Schedule, count: number): ScheduleSummary {
  const { fields, created_at, updated_at, file } = definition
  const { params: _, on_failure: __, overlap = 'skip', catch_up = 'none', paused = false, ...given } = fields
  const next: string[] = []
  let due = paused ? undefined : times.next(progress.settled)
  for (; due !== undefined && next.length < count; due = times.next(due)) next.push(isoTime(due))
  const { waiting, missed, skipped, last_success, last_error } = progress
  return {
    ...{ name, ...given, overlap, catch_up, paused },
    ...{ created_at: isoTime(created_at), updated_at: isoTime(updated_at), next },
    ...{ running: runningOf(progress), waiting: waiting.length, missed, skipped },
    ...(last_success !== undefined && { last_success: isoTime(last_success) }),
    ...(last_error !== undefined && { last_error }),
    ...(file !== undefined && { file: file.name }),
  }
}
