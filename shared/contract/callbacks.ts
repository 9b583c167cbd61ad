/** Callbacks of graphs: what a submission may ask for, and what is sent. */
import type { Static } from '@sinclair/typebox'
import { count, maybe, oneOf, text, time } from './answer-schema.ts'
import { GRAPH_STATES } from './graph-state.ts'
import { Type } from './schema-builder.ts'
import { SecretText } from './secrets.ts'

/** The events that trigger a callback. */
export const CALLBACK_EVENTS = ['graph_ended', 'task_failed', 'approval_asked'] as const
export type CallbackEvent = (typeof CALLBACK_EVENTS)[number]

export const MAX_CALLBACK_URL_CHARACTERS = 2_048

/** An address without spaces. Whether it is one, and may be called, is checked at submission. */
export const CALLBACK_URL = '^[Hh][Tt][Tt][Pp][Ss]?://[\\x21-\\x7e]+$'

/** Headers of one callback, and characters of each, name and value together. */
export const MAX_CALLBACK_HEADERS = 16
export const MAX_CALLBACK_HEADER_CHARACTERS = 4_096

/** The name of a header, and the characters that its value may have: a line break would begin another header. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
export const HEADER_VALUE = /^[\x20-\x7e]*$/

/** Headers that each callback has anyway, in lower case. */
export const CALLBACK_OWN_HEADERS: readonly string[] = [
  ...['host', 'connection', 'content-length', 'content-type', 'transfer-encoding', 'user-agent', 'expect', 'upgrade'],
  ...['x-taskmill-event', 'x-taskmill-delivery', 'x-taskmill-signature'],
]

/** A text, or a secret that is looked up at each try. */
export type CallbackHeaders = Readonly<Record<string, string | Static<typeof SecretText>>>

const HeaderText = Type.Union([Type.String(), SecretText], {
  description: 'A text, or {"$secret", "prefix", "suffix", "mask"}.',
  expected: 'string, or object with $secret',
})

export const GraphCallback = Type.Object({
  url: Type.String({
    maxLength: MAX_CALLBACK_URL_CHARACTERS,
    pattern: CALLBACK_URL,
    description: 'Where to POST: an http: or https: address.',
  }),
  events: Type.Optional(
    Type.Union([Type.Array(oneOf(CALLBACK_EVENTS, 'An event.')), Type.Null()], {
      description: `What to POST: an array of ${CALLBACK_EVENTS.join(', ')}. Default: graph_ended.`,
    }),
  ),
  headers: Type.Optional(
    Type.Union([Type.Record(Type.String(), HeaderText), Type.Null()], {
      description:
        'Further headers, by name: a text, or {"$secret": "name of a secret", "prefix": "Bearer "}, which is looked up at each try.',
    }),
  ),
})
export type GraphCallback = Static<typeof GraphCallback>

const { url, headers } = GraphCallback.properties

/** The receiver of a schedule's callbacks. */
export const ScheduleCallback = Type.Object({ url, headers })
export type ScheduleCallback = Static<typeof ScheduleCallback>

/**
 * Why a schedule calls back:
 *
 * - `missed`: due times passed without a graph
 * - `refused`: the service refused the graph of a due time
 * - `failed`: a graph of the schedule has failed
 */
export const SCHEDULE_FAILURES = ['missed', 'refused', 'failed'] as const
export type ScheduleFailureReason = (typeof SCHEDULE_FAILURES)[number]

const common = {
  graph_id: text('Id of the graph.'),
  name: maybe(text('The name that was submitted with the graph.')),
  seq: count('Number of the event that the callback is about, as in the event streams.'),
}

/** The body of each kind of callback. */
export const CALLBACK_BODIES = {
  /** Once, when the last task of the graph has ended. */
  graph_ended: Type.Object({
    event: Type.Literal('graph_ended'),
    ...common,
    state: oneOf(
      GRAPH_STATES,
      'failed if a task failed, else cancelled if one was cancelled or skipped, else success.',
    ),
    counts: Type.Record(Type.String(), Type.Integer(), { description: 'Tasks per status; zeros are left out.' }),
  }),
  /** For each task that has no attempts left and failed. */
  task_failed: Type.Object({
    event: Type.Literal('task_failed'),
    ...common,
    task_id: text('Id of the task.'),
    error: text('The error of the task; at most 1000 characters.'),
    code: maybe(text('Its runtime.error.code.')),
    attempt: count('Number of the last attempt.'),
  }),
  /** For each approval that waits for its answer from now on. */
  approval_asked: Type.Object({
    event: Type.Literal('approval_asked'),
    ...common,
    task_id: text('Id of the task.'),
    message: maybe(text('What is to be decided; the beginning of a long message.')),
    until: maybe(time('When the time for an answer is over.')),
  }),
  /** For a schedule with `on_failure`. */
  schedule_failed: Type.Object({
    event: Type.Literal('schedule_failed'),
    schedule: text('Name of the schedule.'),
    reason: oneOf(SCHEDULE_FAILURES, 'missed: due times passed. refused: the graph was. failed: the graph has.'),
    at: time('When that was noticed.'),
    due: maybe(time('The due time; of several missed ones the last. Absent if a caller asked for the graph.')),
    missed: maybe(count('How many due times were missed.')),
    error: maybe(text('Why the graph was refused; at most 1000 characters.')),
    graph_id: maybe(text('Id of the failed graph.')),
  }),
} as const
