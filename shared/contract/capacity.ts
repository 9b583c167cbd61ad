/** The answer of GET /runtime: the capacity of control and of its runtime services. */
import type { Static } from '@sinclair/typebox'
import { count, flag, maybe, oneOf, text, textMap, time } from './answer-schema.ts'
import { ListedPause } from './pauses.ts'
import { Capacity } from './runtime-info.ts'
import { Type } from './schema-builder.ts'

/** `away`: it cannot be reached, or does not answer as a runtime service. */
export const RUNTIME_STATES = ['ready', 'away'] as const

export const RuntimeCapacity = Type.Object(
  {
    state: oneOf(RUNTIME_STATES, 'ready: it answers. away: it does not, for the reason given.'),
    away_since: maybe(time('With away: when control noticed it first.')),
    reason: maybe(text('With away: why its capacity is unknown.')),
    runtime_id: maybe(text('With ready: its name.')),
    capacity: maybe(Capacity),
    reserved: maybe(Capacity),
    queued: maybe(count('With ready: accepted tasks that hold no reservation.')),
  },
  { title: 'RuntimeCapacity' },
)
export type RuntimeCapacity = Static<typeof RuntimeCapacity>

/** A runtime service of the pool, with its capacity. */
export const NamedRuntimeCapacity = Type.Object({
  name: text('Its name in the pool.'),
  labels: textMap('Its labels.'),
  draining: flag('Whether it gets no new tasks.'),
  ...RuntimeCapacity.properties,
})
export type NamedRuntimeCapacity = Static<typeof NamedRuntimeCapacity>

/** A replica of control on a database. */
export const ReplicaState = Type.Object({
  id: count('Its number.'),
  state: oneOf(['live', 'gone'], 'gone: nobody has adopted its graphs yet.'),
  url: maybe(text('With live: where other replicas reach it. Absent while it starts, and on a Unix socket.')),
  lease_ms_left: maybe(
    Type.Integer({
      description: 'With live: milliseconds until its lease is over, if it does not renew it. Negative: it is.',
    }),
  ),
})
export type ReplicaState = Static<typeof ReplicaState>

export const CapacityResponse = Type.Object(
  {
    slots: Type.Object({
      used: count('Attempts that execute.'),
      count: count('Attempts that may execute at a time (--max-concurrency).'),
      queued: count('Tasks that only wait for a slot; at most 1024 are counted.'),
      hold: maybe(text('Why no attempt starts, whatever is free.')),
    }),
    runtime: RuntimeCapacity,
    runtimes: Type.Array(NamedRuntimeCapacity, {
      description: 'All runtime services. The first one, or that without a name, is runtime, too.',
    }),
    pauses: maybe(Type.Array(ListedPause, { description: 'As GET /pauses. Absent if nothing is paused.' })),
    replicas: maybe(Type.Array(ReplicaState, { description: 'With a database: all replicas of control.' })),
  },
  { title: 'CapacityResponse' },
)
export type CapacityResponse = Static<typeof CapacityResponse>
