/** Tasks that take over an earlier outcome: the field `cache` of a task. */
import type { Static } from '@sinclair/typebox'
import type { Immutable } from './answer-schema.ts'
import { Type } from './schema-builder.ts'

export const MAX_CACHE_KEY_CHARACTERS = 256

/** Milliseconds: a day. */
export const DEFAULT_CACHE_TTL_MS = 24 * 60 * 60 * 1_000

/** Milliseconds: a year. */
export const MAX_CACHE_TTL_MS = 365 * DEFAULT_CACHE_TTL_MS

export const Cache = Type.Object(
  {
    key: Type.String({
      minLength: 1,
      maxLength: MAX_CACHE_KEY_CHARACTERS,
      description: 'Must contain all that decides about the outcome, such as a digest of the inputs.',
    }),
    ttl_ms: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: MAX_CACHE_TTL_MS }), Type.Null()], {
        description:
          'Milliseconds for which an outcome counts, at most a year. Default a day. 0: the task is always executed.',
      }),
    ),
  },
  { additionalProperties: false },
)
export type Cache = Immutable<Static<typeof Cache>>
