/** The pool of runtime services: its routes at control, and what they answer. */
import type { Static } from '@sinclair/typebox'
import { TOKEN_RULE } from '../http/token-form.ts'
import { count, flag, type Immutable, maybe, text, textMap } from './answer-schema.ts'
import { RuntimeCapacity } from './capacity.ts'
import { Pause } from './pauses.ts'
import { RUNTIME_LABEL_RULE, RUNTIME_LABEL_VALUE_RULE, RUNTIME_NAME_RULE } from './runtime-names.ts'
import { Type } from './schema-builder.ts'
import { stringMap } from './string-map.ts'

/** Bytes of the body of POST /runtimes: 64 labels, each character escaped, an address and a token. */
export const MAX_RUNTIME_BODY_BYTES = 128 * 1024

/** The body of POST /runtimes. */
export const RuntimeRegistration = Type.Object(
  {
    name: Type.String({
      expected: 'string',
      description: `Its name: ${RUNTIME_NAME_RULE}.`,
      examples: ['gpu-1'],
    }),
    url: Type.String({
      expected: 'string',
      description: 'Its base URL, as control reaches it. Without user, password and query.',
      examples: ['http://10.0.0.7:18080'],
    }),
    labels: Type.Optional(
      Type.Union([stringMap(), Type.Null()], {
        expected: 'object of strings',
        description: `At most 64 labels. Names have ${RUNTIME_LABEL_RULE}; values ${RUNTIME_LABEL_VALUE_RULE}.`,
        examples: [{ gpu: '', zone: 'a' }],
      }),
    ),
    token: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        expected: 'string',
        description: `The token that it requires: ${TOKEN_RULE}. Control sends it no other one, and shows it nowhere. Absent: none, or the one that it has at this address.`,
        writeOnly: true,
      }),
    ),
  },
  { title: 'RuntimeRegistration' },
)
export type RuntimeRegistration = Static<typeof RuntimeRegistration>

/** A runtime service of the pool. */
export const PooledRuntime = Type.Object(
  {
    name: text('Its name in the pool.'),
    url: text('Its base URL.'),
    labels: textMap('Its labels.'),
    draining: flag('Whether it gets no new tasks.'),
    drain: maybe(
      Type.Object(Pause.properties, { description: 'Since when, by whom and why it gets none. Absent if it does.' }),
    ),
    configured: flag('Whether --runtime-url names it.'),
    attempts: count('Attempts that it has or may have.'),
  },
  { title: 'PooledRuntime' },
)
export type PooledRuntime = Immutable<Static<typeof PooledRuntime>>

/** The answer of GET /runtimes. */
export const RuntimesResponse = Type.Object({
  runtimes: Type.Array(Type.Object({ ...PooledRuntime.properties, ...RuntimeCapacity.properties }), {
    description: 'All of them, in the order in which they came.',
  }),
})
export type RuntimesResponse = Immutable<Static<typeof RuntimesResponse>>

/** The answer of DELETE /runtimes/{name}. */
export const RuntimeRemoval = Type.Object({
  name: text('Its name.'),
  attempts: count('Attempts that were ended with it: with lost, those that it had or may have had.'),
})
export type RuntimeRemoval = Immutable<Static<typeof RuntimeRemoval>>
