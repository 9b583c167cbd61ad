/** Pauses: requests and answers of /pause, /resume, /pauses, and of /graphs/{id}/pause and /resume. */
import type { Static } from '@sinclair/typebox'
import { flag, type Immutable, maybe, text, time } from './answer-schema.ts'
import { Type } from './schema-builder.ts'

/** Characters of the `why` of a pause. */
export const MAX_PAUSE_WHY_CHARACTERS = 1_000

/** Types of tasks that are paused at a time. */
export const MAX_PAUSED_TYPES = 100

/** Bytes of the body of a request: `why`, each character escaped, and a type. */
export const MAX_PAUSE_BODY_BYTES = 16 * 1024

const why = Type.Optional(
  Type.Union([Type.String({ maxLength: MAX_PAUSE_WHY_CHARACTERS }), Type.Null()], {
    expected: `string of at most ${MAX_PAUSE_WHY_CHARACTERS} characters`,
    description: 'The reason, for whoever asks why nothing starts.',
  }),
)

const type = Type.Optional(
  Type.Union([Type.String(), Type.Null()], {
    expected: 'string',
    description: 'A type of tasks, such as runtime or shell. Absent: the whole service.',
  }),
)

/** The body of POST /graphs/{id}/pause. */
export const GraphPauseRequest = Type.Object({ why }, { title: 'GraphPauseRequest' })
export type GraphPauseRequest = Immutable<Static<typeof GraphPauseRequest>>

/** The body of POST /pause. */
export const PauseRequest = Type.Object({ type, why }, { title: 'PauseRequest' })
export type PauseRequest = Immutable<Static<typeof PauseRequest>>

/** The body of POST /resume. */
export const ResumeRequest = Type.Object({ type }, { title: 'ResumeRequest' })
export type ResumeRequest = Immutable<Static<typeof ResumeRequest>>

const facts = {
  since: time('When it was paused.'),
  by: maybe(text('Name of the token that paused it. Absent for the token of the service.')),
  why: maybe(text('The reason, if one was given.')),
}

/** The pause of a graph, in answers about it. */
export const Pause = Type.Object(facts, {
  title: 'Pause',
  description: 'Nothing of it starts until it is resumed. Absent if it is not paused itself.',
})
export type Pause = Immutable<Static<typeof Pause>>

const pausedType = maybe(text('The type of tasks, as category or category.tool. Absent: the whole service.'))

/** An element of GET /pauses. */
export const ListedPause = Type.Object({ type: pausedType, ...facts }, { title: 'ListedPause' })
export type ListedPause = Immutable<Static<typeof ListedPause>>

const answer = {
  paused: flag('Whether it is paused now.'),
  since: maybe(facts.since),
  by: facts.by,
  why: facts.why,
}

/** The answer of POST /pause and /resume. */
export const PauseAnswer = Type.Object({ type: pausedType, ...answer }, { title: 'PauseAnswer' })
export type PauseAnswer = Immutable<Static<typeof PauseAnswer>>

/** The answer of POST /graphs/{id}/pause and /resume. */
export const GraphPauseAnswer = Type.Object(
  { graph_id: text('Id of the graph.'), ...answer },
  { title: 'GraphPauseAnswer' },
)
export type GraphPauseAnswer = Immutable<Static<typeof GraphPauseAnswer>>
