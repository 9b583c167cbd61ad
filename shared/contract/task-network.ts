/** What a task does through the rules of its network: the same answer of the runtime service and of control. */
import type { Static } from '@sinclair/typebox'
import { count, type Immutable, maybe, oneOf, text, time } from './answer-schema.ts'
import { NetworkUsage } from './runtime.ts'
import { Type } from './schema-builder.ts'

export const CONNECTION_VERDICTS = ['allowed', 'failed', 'refused'] as const
export type ConnectionVerdict = (typeof CONNECTION_VERDICTS)[number]

/** A connection that has ended, or was refused. */
export const NetworkConnection = Type.Object({
  at: time('When it ended.'),
  verdict: oneOf(CONNECTION_VERDICTS, 'failed: the rules allowed it, but it could not be made.'),
  host: maybe(text('The host that the task named. Absent if it did not come to name one.')),
  port: maybe(count('The port that the task named.')),
  address: maybe(text('The address that it was connected to.')),
  rule: maybe(text('The rule that decided.')),
  bytes_sent: maybe(count('Bytes that the task sent.')),
  bytes_received: maybe(count('Bytes that it received.')),
  duration_ms: maybe(count('Milliseconds from its request to its end.')),
  reason: maybe(text('What kind of refusal, or why it was cut.')),
  message: text('The same in words.'),
})
export type NetworkConnection = Static<typeof NetworkConnection>

export const TaskNetwork = Type.Object(
  {
    usage: maybe(Type.Object(NetworkUsage.properties, { description: 'The totals so far. Absent without rules.' })),
    open: count('Connections that are open now.'),
    connections: Type.Array(NetworkConnection, {
      description: 'The first connections that were allowed, and the first that were refused, by time.',
    }),
    unlisted: count('Further connections, which are only counted.'),
  },
  { title: 'TaskNetwork' },
)
export type TaskNetwork = Immutable<Static<typeof TaskNetwork>>

export const NO_NETWORK: TaskNetwork = { open: 0, connections: [], unlisted: 0 }
