/** Schedules: graphs that the service submits at certain times. Their routes, and what they answer. */
import type { Static, TSchema } from '@sinclair/typebox'
import { count, flag, type Immutable, maybe, oneOf, text, time } from './answer-schema.ts'
import { ScheduleCallback } from './callbacks.ts'
import { CATCH_UPS, MAX_EVERY_MS, MAX_JITTER_MS, MAX_KEPT_RUNS, MIN_EVERY_MS, OVERLAPS } from './schedule-words.ts'
import { Type } from './schema-builder.ts'
import { TIME } from './start-order.ts'
import { GraphFields, SubmitWarning, TaskGraph } from './submission.ts'

export const MAX_SCHEDULE_NAME_CHARACTERS = 128

export const SCHEDULE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

export const MAX_CRON_CHARACTERS = 256

/** Due times that a schedule shows. */
export const SHOWN_TIMES = 5

/** Runs that a schedule shows. */
export const SHOWN_RUNS = 10

const field = <T extends TSchema>(schema: T, expected: string, description: string) =>
  Type.Optional(Type.Union([schema, Type.Null()], { expected, description }))

const words = (values: readonly string[]) => values.map((value) => `"${value}"`).join(', ')

const moment = (description: string) =>
  field(Type.String({ pattern: TIME }), 'time such as "2030-01-31T09:30:00Z"', description)

/** The fields of PUT /schedules/{name} beside the graph. */
export const ScheduleFields = Type.Object({
  cron: field(
    Type.String({ minLength: 1, maxLength: MAX_CRON_CHARACTERS }),
    `string of 1 to ${MAX_CRON_CHARACTERS} characters, such as "0 3 * * *"`,
    'When: minute, hour, day, month, weekday, with seconds in front if there are six fields. Names (MON, JAN), L (last), # (MON#1 is the first Monday), @daily and the like.',
  ),
  every: field(
    Type.Integer({ minimum: MIN_EVERY_MS, maximum: MAX_EVERY_MS }),
    `integer of milliseconds from ${MIN_EVERY_MS} to ${MAX_EVERY_MS}`,
    'Instead of cron: milliseconds between two due times, counted from start, else from when this was put.',
  ),
  at: moment('Instead of cron: the only due time.'),
  timezone: field(
    Type.String({ minLength: 1, maxLength: 64 }),
    'name of a time zone, such as "Europe/Berlin"',
    'With cron: the time zone. Default UTC.',
  ),
  params: field(
    Type.Record(Type.String(), Type.Unknown()),
    'object of parameters of the graph',
    'Values for parameters of the graph.',
  ),
  overlap: field(
    Type.Union(OVERLAPS.map((each) => Type.Literal(each))),
    words(OVERLAPS),
    'While a graph of the schedule runs: skip (default) the due time, queue it until that one has ended, cancel that one, or allow both.',
  ),
  catch_up: field(
    Type.Union(CATCH_UPS.map((each) => Type.Literal(each))),
    words(CATCH_UPS),
    'Due times that passed more than a minute ago while the service was down: none (default), the last, or all, at most 100. All requires overlap queue or allow.',
  ),
  jitter: field(
    Type.Integer({ minimum: 0, maximum: MAX_JITTER_MS }),
    `integer of milliseconds from 0 to ${MAX_JITTER_MS}`,
    'Each graph is submitted up to this much later than its due time; the same delay for the same time. Default 0.',
  ),
  paused: field(Type.Boolean(), 'boolean', 'While true, nothing is due. Default false.'),
  start: moment('Nothing is due before.'),
  end: moment('Nothing is due after.'),
  keep: field(
    Type.Integer({ minimum: 1, maximum: MAX_KEPT_RUNS }),
    `integer from 1 to ${MAX_KEPT_RUNS}`,
    'Ended graphs of the schedule that stay. Older ones are deleted. Default: as long as other graphs.',
  ),
  on_failure: field(
    ScheduleCallback,
    'object with a url (an http: or https: address), and optionally headers',
    'A POST to this address when due times were missed, a graph was refused, or one has failed.',
  ),
})
export type ScheduleFields = Static<typeof ScheduleFields>

/** The body of PUT /schedules/{name}. */
export const ScheduleRequest = Type.Object(
  {
    graph: Type.Object(TaskGraph.properties, { description: 'The graph, as POST /tasks takes it.' }),
    ...ScheduleFields.properties,
  },
  { title: 'ScheduleRequest' },
)
export type ScheduleRequest = Immutable<Static<typeof ScheduleRequest>>

/** A graph that a schedule has submitted. */
export const ScheduleRun = Type.Object({
  graph_id: text('Id of the graph.'),
  due: maybe(time('The due time. Absent if a caller asked for it.')),
  at: time('When it was submitted.'),
  state: maybe(text('running, success, failed or cancelled. Absent if the graph was removed before it was told.')),
})
export type ScheduleRun = Immutable<Static<typeof ScheduleRun>>

const shown = {
  name: text('Its name.'),
  cron: maybe(text('As put.')),
  every: maybe(count('As put, in milliseconds.')),
  at: maybe(text('As put.')),
  timezone: maybe(text('As put.')),
  overlap: oneOf(OVERLAPS, 'As put, or the default.'),
  catch_up: oneOf(CATCH_UPS, 'As put, or the default.'),
  jitter: maybe(count('As put, in milliseconds.')),
  paused: flag('Whether nothing is due now.'),
  start: maybe(text('As put.')),
  end: maybe(text('As put.')),
  keep: maybe(count('As put.')),
  created_at: time('When it was first put.'),
  updated_at: time('When it was last put, paused or resumed.'),
  next: Type.Array(time('A due time, without jitter.'), {
    description: `The next due times: ${SHOWN_TIMES}, in a list one. Empty while it is paused, and when none is left.`,
  }),
  running: count('Its graphs that have not ended.'),
  waiting: count('Due times that wait until a graph has ended, or the service takes graphs again.'),
  missed: count('Due times that passed without a graph: nobody looked, or the service refused the graph.'),
  skipped: count('Due times that were skipped because a graph of the schedule ran.'),
  last_success: maybe(time('When a graph of the schedule last succeeded.')),
  last_error: maybe(text('Why the last graph was refused. Absent once one was accepted.')),
  file: maybe(text('The file in --schedules-dir that it is from. Callers cannot change it then.')),
}

/** An element of GET /schedules. */
export const ScheduleSummary = Type.Object(shown, { title: 'ScheduleSummary' })
export type ScheduleSummary = Immutable<Static<typeof ScheduleSummary>>

/** The answer of GET /schedules/{name}, and of its changes. */
export const Schedule = Type.Object(
  {
    ...shown,
    graph: Type.Unknown({ description: 'The graph, as put.' }),
    params: GraphFields.properties.params,
    on_failure: ScheduleFields.properties.on_failure,
    runs: Type.Array(ScheduleRun, { description: `Its last ${SHOWN_RUNS} graphs, the newest first.` }),
    warnings: maybe(
      Type.Array(SubmitWarning, { description: 'After a PUT: tasks that are certain to fail as things are now.' }),
    ),
  },
  { title: 'Schedule' },
)
export type Schedule = Immutable<Static<typeof Schedule>>

/** An element of GET /schedule-files. */
export const ScheduleFile = Type.Object(
  {
    file: text('Its name in the directory.'),
    schedule: maybe(text('The schedule that is from it. Absent if it never had one.')),
    error: maybe(text('Why it cannot be used as it is. What it said before stays in force.')),
    replica: maybe(count('Number of the replica whose directory it is in. Absent without --database.')),
  },
  { title: 'ScheduleFile' },
)
export type ScheduleFile = Immutable<Static<typeof ScheduleFile>>

/** The answer of POST /schedules/{name}/trigger. */
export const ScheduleTriggered = Type.Object({ graph_id: text('Id of the graph.') }, { title: 'ScheduleTriggered' })
export type ScheduleTriggered = Immutable<Static<typeof ScheduleTriggered>>
