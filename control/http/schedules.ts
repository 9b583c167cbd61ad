/** /schedules: graphs that the service submits at certain times. */

import type { AnyElysia } from 'elysia'
import { badRequest } from '../../shared/contract/errors.ts'
import {
  Schedule,
  ScheduleFile,
  ScheduleRequest,
  ScheduleSummary,
  ScheduleTriggered,
} from '../../shared/contract/schedules.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { described, empty, json, truth } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { traceIdOf } from '../../shared/http/service.ts'
import { deleteSchedule, pauseSchedule, triggerSchedule } from '../operations/change-schedule.ts'
import type { OperationParts } from '../operations/parts.ts'
import { putSchedule } from '../operations/put-schedule.ts'
import { getSchedule, listScheduleFiles, listSchedules } from '../operations/show-schedules.ts'
import { truthOf } from './query-values.ts'
import { LINKS_OF_GRAPH } from './tasks.ts'

const section = 'Schedules'
const params = { name: 'Name of the schedule.' }
const AWAY = { 503: 'The database is away.' }
const UNKNOWN = { 404: 'There is no such schedule.' }
const NOT_STORED = { 503: 'The service cannot store the change.' }

const EXAMPLE = { cron: '0 3 * * *', timezone: 'Europe/Berlin', graph: { tasks: [{ id: 'night', type: 'noop' }] } }

const VERBS = [
  {
    verb: 'pause',
    isPaused: true,
    summary: 'Pause a schedule',
    description: 'Nothing is due until it is resumed. Its graphs go on.',
  },
  {
    verb: 'resume',
    isPaused: false,
    summary: 'Resume a schedule',
    description: 'What would have been due meanwhile is not made up for.',
  },
] as const

function onlyNewIn(header: string | null): boolean {
  if (header !== null && header.trim() !== '*')
    throw badRequest('If-None-Match: expected * (schedules have no tags), or no such header')
  return header !== null
}

export function addScheduleRoutes(app: AnyElysia, parts: OperationParts): void {
  app
    .get(
      '/schedules',
      (): Promise<readonly ScheduleSummary[]> => listSchedules(parts),
      described({
        section,
        right: 'read',
        isOfService: true,
        summary: 'List schedules',
        description: 'All of them, by name, without their graphs.',
        answers: { 200: json(Type.Array(ScheduleSummary), 'The schedules.') },
        errors: AWAY,
      }),
    )
    .get(
      '/schedule-files',
      (): Promise<readonly ScheduleFile[]> => listScheduleFiles(parts),
      described({
        section,
        right: 'read',
        isOfService: true,
        summary: 'List the files of schedules',
        description:
          'Those in --schedules-dir, by name, with what is wrong with them. Empty without that directory. Of replicas, those of the one whose directory counts.',
        answers: { 200: json(Type.Array(ScheduleFile), 'The files.') },
        errors: { 503: 'The replica whose directory counts does not answer.' },
      }),
    )
    .put(
      '/schedules/:name',
      async ({ params, query, request, set }): Promise<Schedule> => {
        const isDryRun = truthOf('dry_run', query.dry_run)
        const body = await readBody(app, request, parts.maxBodyBytes)
        const isOnlyNew = onlyNewIn(request.headers.get('if-none-match'))
        const call = { traceId: traceIdOf(set), signal: request.signal, isDryRun, isOnlyNew }
        const { schedule, isNew } = await putSchedule(parts, params.name, body, call)
        set.status = isNew && !isDryRun ? 201 : 200
        return schedule
      },
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary: 'Create or replace a schedule',
        description:
          'The graph is checked as POST /tasks does. A schedule that is put again with the same times goes on where it was; with other times, it begins now.',
        params,
        query: {
          dry_run: truth(
            'Only check the schedule: answer 200 with its next due times, and keep nothing. Default false.',
          ),
        },
        headers: { 'If-None-Match': '`*` only creates: 412 if there is such a schedule.' },
        body: ScheduleRequest,
        example: EXAMPLE,
        answers: {
          200: json(Schedule, 'It was there before, or this is a dry run.'),
          201: json(Schedule, 'It is new, and kept.'),
        },
        errors: {
          400: 'The name, a field or the graph is invalid, or it is never due.',
          409: 'There are --max-schedules schedules already, or the schedule is that of a file.',
          412: 'There is such a schedule, and `If-None-Match` is `*`.',
          413: 'The body is too large.',
          ...NOT_STORED,
        },
      }),
    )
    .get(
      '/schedules/:name',
      ({ params }): Promise<Schedule> => getSchedule(parts, params.name),
      described({
        section,
        right: 'read',
        isOfService: true,
        summary: 'Read a schedule',
        description: 'With its next due times and its last graphs.',
        params,
        answers: { 200: json(Schedule, 'The schedule.') },
        errors: UNKNOWN,
      }),
    )
    .delete(
      '/schedules/:name',
      async ({ params, set }) => {
        await deleteSchedule(parts, params.name)
        set.status = 204
        delete set.headers['content-type']
      },
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary: 'Delete a schedule',
        description: 'Its graphs stay, and go on.',
        params,
        answers: { 204: empty('It is removed, on disk too.') },
        errors: { ...UNKNOWN, 409: 'The schedule is that of a file.', ...NOT_STORED },
      }),
    )
    .post(
      '/schedules/:name/trigger',
      ({ params, set }): Promise<ScheduleTriggered> => {
        set.status = 202
        return triggerSchedule(parts, params.name)
      },
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary: 'Submit the graph of a schedule now',
        description: 'Also while the schedule is paused, or a graph of it runs. Changes no due time.',
        params,
        answers: { 202: { ...json(ScheduleTriggered, 'The graph is accepted.'), links: LINKS_OF_GRAPH } },
        errors: {
          ...UNKNOWN,
          400: 'The graph is no longer valid.',
          409: 'The group of the graph is full.',
          503: 'The service cannot store the graph.',
        },
      }),
    )
  for (const { verb, isPaused, summary, description } of VERBS) {
    app.post(
      `/schedules/:name/${verb}`,
      ({ params }): Promise<Schedule> => pauseSchedule(parts, params.name, isPaused),
      described({
        section,
        right: 'operate',
        isOfService: true,
        summary,
        description,
        params,
        answers: { 200: json(Schedule, 'The change is kept.') },
        errors: { ...UNKNOWN, 409: 'The file of the schedule says paused.', ...NOT_STORED },
      }),
    )
  }
}
