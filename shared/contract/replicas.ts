/** What replicas of control ask each other. */
import type { Static } from '@sinclair/typebox'
import { flag } from './answer-schema.ts'
import type { WaitAnswer } from './mcp-answers.ts'
import { Type } from './schema-builder.ts'

/** Ids that one request asks to give up. */
export const MAX_GIVEN_UP_IDS = 10_000

export const GiveUpRequest = Type.Object(
  {
    task_ids: Type.Array(Type.String(), {
      maxItems: MAX_GIVEN_UP_IDS,
      description: 'Ids of tasks that have ended.',
    }),
  },
  { title: 'GiveUpRequest' },
)
export type GiveUpRequest = Static<typeof GiveUpRequest>

/** What the owner of a graph has seen while it waited. */
export const WaitedGraph = Type.Object(
  {
    is_scoped: flag('Whether the ids of its tasks belong to the graph.'),
    waited: Type.Object({}, { additionalProperties: true }),
  },
  { title: 'WaitedGraph' },
)
export type WaitedGraph = Omit<Static<typeof WaitedGraph>, 'waited'> & { readonly waited: WaitAnswer }

/** Where the attempts of a replica are. */
export const PlacedAttempts = Type.Object(
  {
    attempts: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
      description: 'Numbers of attempts that a runtime service has or may have, by its name.',
    }),
  },
  { title: 'PlacedAttempts' },
)
export type PlacedAttempts = Static<typeof PlacedAttempts>
