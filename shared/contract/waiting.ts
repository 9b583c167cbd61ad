/** Why a task waits, in its record and in the answer about its graph. */
import type { Static } from '@sinclair/typebox'
import { maybe, oneOf, text, texts, time } from './answer-schema.ts'
import { Type } from './schema-builder.ts'

/** Tasks that a `waiting` names. */
export const MAX_WAITING_TASKS = 10

/** Graphs that a `waiting` names. */
export const MAX_WAITING_GRAPHS = 3

export const WAITING_REASONS = [
  'dependencies',
  'group',
  'concurrency',
  'pause',
  'backoff',
  'delay',
  'runtime',
  'approval',
  'signal',
  'answer',
  'storage',
] as const

/** Why a task that has not ended does not execute. */
export const Waiting = Type.Object(
  {
    reason: oneOf(
      WAITING_REASONS,
      'dependencies: other tasks must end first, most in success. group: its graph waits for a place of its group. concurrency: no slot is free. pause: it could start, but its graph, its type or the service is paused. backoff: another attempt follows. delay: its not_before, that of its graph, or the time that a wait is for, has not come. runtime: the runtime service has it queued, or is away. approval: somebody has to approve or reject it. signal: a signal has to come. answer: an HTTP answer has to be as expected. storage: control cannot write, as on a full disk.',
    ),
    tasks: maybe(texts(`Ids of dependencies that have not ended, at most ${MAX_WAITING_TASKS}.`)),
    group: maybe(text('The group whose places are taken.')),
    graphs: maybe(texts(`Ids of graphs that hold its places, at most ${MAX_WAITING_GRAPHS}.`)),
    until: maybe(time('When the backoff or the delay ends, or the time for an approval or a signal.')),
    detail: maybe(
      text(
        'More in words; of an approval the beginning of its message, of a wait its message, and what the last answer was.',
      ),
    ),
  },
  { title: 'Waiting', description: 'Why it does not execute. Absent while it executes, and once it has ended.' },
)
export type Waiting = Static<typeof Waiting>
