/** Request and answer of POST /tasks/{id}/retry and POST /graphs/{id}/retry. */
import type { Static } from '@sinclair/typebox'
import { count, type Immutable, maybe, text, texts } from './answer-schema.ts'
import { MAX_RETRIED_SHOWN } from './events.ts'
import { Type } from './schema-builder.ts'

/** Bytes of the body of a request. */
export const MAX_RETRY_BODY_BYTES = 1024

export const RetryRequest = Type.Object(
  {
    revision: Type.Optional(
      Type.Integer({
        minimum: 0,
        expected: 'integer from 0',
        description: 'The revision of the graph that the caller has seen: 409 if it has another one. Default: any.',
      }),
    ),
  },
  { title: 'RetryRequest' },
)
export type RetryRequest = Immutable<Static<typeof RetryRequest>>

export const RetryResponse = Type.Object(
  {
    graph_id: text('Id of the graph, which runs again.'),
    retried: texts('Ids of the tasks that are retried: the named one, or all that made the graph fail.'),
    truncated: maybe(Type.Literal(true, { description: `retried has only the first ${MAX_RETRIED_SHOWN}.` })),
    pending: count('Tasks that run again, or are decided about again: those in retried, and all that depend on them.'),
  },
  { title: 'RetryResponse' },
)
export type RetryResponse = Immutable<Static<typeof RetryResponse>>
