/** Who is signed in: requests and answers of /session and /session/links. */
import type { Static } from '@sinclair/typebox'
import { maybe, oneOf, text, texts, time } from './answer-schema.ts'
import { RIGHTS } from './rights.ts'
import { Type } from './schema-builder.ts'

/** Bytes of the body of a request. */
export const MAX_SESSION_BODY_BYTES = 16 * 1024

export const SignInRequest = Type.Object({
  token: maybe(text('A token. Not needed with Authorization: Bearer.')),
  code: maybe(text('In place of a token: the code of a link.')),
})
export type SignInRequest = Static<typeof SignInRequest>

export const SessionResponse = Type.Object({
  by: oneOf(
    ['session', 'token', 'open'],
    'What the request carries: the cookie of a session, a token, or neither, because the service needs none.',
  ),
  name: maybe(text('Name of the token. Absent for the token of the service, and without one.')),
  tenant: maybe(text('Tenant of the token. Absent: the caller sees the graphs of everybody.')),
  rights: Type.Array(oneOf(RIGHTS, 'A right.'), { description: 'What the caller may do.' }),
  types: maybe(texts('The only types of tasks that it may submit.')),
  expires: maybe(time('End of the session, or of the token. Absent for what has no end of its own.')),
})
export type SessionResponse = Static<typeof SessionResponse>

export const SessionLink = Type.Object({
  code: maybe(text('Signs in once: POST /session with {"code"}, or /#/sign-in/CODE of the dashboard.')),
  expires: maybe(time('Until when it does.')),
})
export type SessionLink = Static<typeof SessionLink>
