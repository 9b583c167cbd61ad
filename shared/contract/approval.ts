/** Tasks that wait until somebody approves or rejects them: their parameters, the answers, and what comes of them. */
import type { Static } from '@sinclair/typebox'
import { flag, type Immutable, maybe, text, time } from './answer-schema.ts'
import { Type } from './schema-builder.ts'

/** The type of such a task. */
export const APPROVAL_TYPE = 'approval'

/** Characters of the message of an approval. It stays in memory as long as its task. */
export const MAX_APPROVAL_MESSAGE_CHARACTERS = 16_384

/** Characters of the message that events and answers about a graph repeat. */
export const MAX_WAITING_MESSAGE_CHARACTERS = 500

/** Tokens and rights in `by` of an approval. */
export const MAX_APPROVERS = 32

export const MAX_WHO_CHARACTERS = 200

export const MAX_WHY_CHARACTERS = 4_000

/** Bytes of an answer's body: both texts, each character escaped. */
export const MAX_APPROVAL_ANSWER_BYTES = 64 * 1024

/** Approvals that the answer of a wait names. */
export const MAX_NAMED_APPROVALS = 10

/** Not empty, no control character. */
const WHO = '^(?=.*\\S)[^\\x00-\\x1f\\x7f-\\x9f]*$'

/** The body of POST /tasks/{id}/approve and of /reject. */
export const ApprovalAnswer = Type.Object(
  {
    who: Type.String({
      minLength: 1,
      maxLength: MAX_WHO_CHARACTERS,
      pattern: WHO,
      expected: `string of 1 to ${MAX_WHO_CHARACTERS} characters, none of them a control character`,
      description: 'The name of the person who answers, as the record will have it. The service does not check it.',
    }),
    why: Type.Optional(
      Type.Union([Type.String({ maxLength: MAX_WHY_CHARACTERS }), Type.Null()], {
        expected: `string of at most ${MAX_WHY_CHARACTERS} characters`,
        description: 'The reason, for the record.',
      }),
    ),
  },
  { title: 'ApprovalAnswer' },
)
export type ApprovalAnswer = Static<typeof ApprovalAnswer>

/** The result of an approval that was answered. */
export const ApprovalResult = Type.Object(
  {
    approved: flag('false: rejected.'),
    who: text('Who answered.'),
    why: maybe(text('The reason, if one was given.')),
    token: maybe(text('Name of the token that answered. Absent for the token of the service.')),
    at: time('When the answer arrived.'),
  },
  { title: 'ApprovalResult' },
)
export type ApprovalResult = Immutable<Static<typeof ApprovalResult>>
