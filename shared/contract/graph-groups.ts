/** Groups of graphs of which only some run at a time. */
import type { Static } from '@sinclair/typebox'
import { oneOf } from './answer-schema.ts'
import { Type } from './schema-builder.ts'

export const MAX_GROUP_CHARACTERS = 200
export const MAX_GROUP_LIMIT = 1_000

/** What a submission does while no place of its group is free. */
export const ON_FULL = ['wait', 'cancel_oldest', 'refuse'] as const

export const GraphConcurrency = Type.Object({
  group: Type.String({
    minLength: 1,
    maxLength: MAX_GROUP_CHARACTERS,
    description: 'Name of the group. Graphs with the same name share its places.',
  }),
  limit: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: MAX_GROUP_LIMIT }), Type.Null()], {
      description: `The graph starts while fewer than this many graphs of the group run: 1 to ${MAX_GROUP_LIMIT}. Default 1.`,
    }),
  ),
  on_full: Type.Optional(
    Type.Union([oneOf(ON_FULL, 'What happens.'), Type.Null()], {
      description:
        'While no place is free: wait; cancel_oldest: cancel the oldest graphs of the group until this one fits; refuse: 409. Default: wait.',
    }),
  ),
})
export type GraphConcurrency = Static<typeof GraphConcurrency>
