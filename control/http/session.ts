/** /session: signing in with a token, who is signed in, signing out. /session/links: a link that signs in once. */
import type { AnyElysia } from 'elysia'
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { RIGHTS } from '../../shared/contract/rights.ts'
import { MAX_SESSION_BODY_BYTES, SessionLink, SessionResponse, SignInRequest } from '../../shared/contract/session.ts'
import { callerOf, type Identity, sessionOf } from '../../shared/http/callers.ts'
import { bearerIn, SESSION_PATH } from '../../shared/http/guard.ts'
import { described, empty, json } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import type { RoutedRequest } from '../../shared/http/service.ts'
import { sessionCookie, sessionCookieIn } from '../../shared/http/session-cookie.ts'
import { type Sessions, SIGN_IN_LINK_MS } from '../../shared/http/sessions.ts'
import { runSync } from '../../shared/process/steps.ts'
import type { UnknownFields } from '../../shared/request/unknown-names.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { decodeJson } from '../json/body.ts'
import { refuseUnknownFields, refuseWrongForm } from '../json/request-fields.ts'
import type { OperationParts } from '../operations/parts.ts'
import { addressOf, type RequestAudit } from './audit.ts'
import { FailedSignIns } from './failed-sign-ins.ts'

const section = 'Sessions'

const SET_COOKIE = 'set-cookie'

export interface SessionRouteParts {
  /** Undefined if the service needs no token. */
  readonly sessions: Sessions | undefined
  readonly audit: RequestAudit | undefined
}

export function addSessionRoutes(
  app: AnyElysia,
  { unknownFields }: OperationParts,
  { sessions, audit }: SessionRouteParts,
): void {
  const failures = new FailedSignIns()

  /** Whom a request to sign in is of. Throws 400, 401, 413 and 429. */
  const signedInBy = async (context: RoutedRequest): Promise<Identity> => {
    const { request } = context
    if (sessions === undefined) throw badRequest('this service needs no token: nobody signs in')
    const { token, code } = await credentialIn(app, request, unknownFields)
    const address = addressOf(app, request) ?? ''
    const seconds = failures.waitSeconds(address)
    if (seconds > 0)
      throw new ServiceError(429, `too many attempts to sign in have failed: try again in ${seconds} s`, {
        headers: { 'retry-after': String(seconds) },
      })
    const identity = code === undefined ? sessions.identify(token!) : sessions.useLink(code)
    if (identity !== undefined) return identity
    failures.failed(address)
    const fault =
      code === undefined
        ? 'the token is wrong, revoked or expired'
        : `the link was used, or is older than ${SIGN_IN_LINK_MS / 1_000} s (make another with taskmill open)`
    audit?.tell(context, undefined, 401)
    throw new ServiceError(401, fault)
  }

  app
    .post(
      SESSION_PATH,
      async ({ request, route, set }): Promise<SessionResponse> => {
        const context = { request, route, set }
        const identity = await signedInBy(context)
        sessions!.end(sessionCookieIn(request.headers))
        const { value, session } = sessions!.begin(identity)
        const seconds = Math.max(0, Math.floor((session.expiresAt - Date.now()) / 1_000))
        set.headers[SET_COOKIE] = sessionCookie(request.headers, value, seconds)
        audit?.tell(context, identity.caller?.grant.name, 200)
        return shown('session', identity, session.expiresAt)
      },
      described({
        section,
        right: 'none',
        summary: 'Sign in',
        description:
          'With a token, in the body or in Authorization, or with the code of a link. The answer sets a cookie for the dashboard.',
        body: SignInRequest,
        example: { token: 'tmk_...' },
        answers: { 200: json(SessionResponse, 'A session has begun.', { 'Set-Cookie': 'The cookie of the session.' }) },
        errors: {
          400: 'The body is invalid, or the service needs no token.',
          401: 'The token or the code is not good.',
          413: 'The body is too large.',
          429: 'Too many attempts from this address have failed.',
        },
      }),
    )
    .get(
      SESSION_PATH,
      ({ request }): SessionResponse => {
        const session = sessionOf(request)
        const caller = callerOf(request)
        if (session !== undefined) return shown('session', session, session.expiresAt)
        return shown(sessions === undefined ? 'open' : 'token', { caller }, caller?.expiresAt)
      },
      described({
        section,
        right: 'any',
        summary: 'Read who is signed in',
        description: 'What the caller may do, and until when.',
        answers: { 200: json(SessionResponse, 'The caller.') },
      }),
    )
    .delete(
      SESSION_PATH,
      ({ request, route, set }) => {
        const session = sessionOf(request)
        if (session !== undefined) audit?.tell({ request, route, set }, session.caller?.grant.name, 204)
        sessions?.end(sessionCookieIn(request.headers))
        set.headers[SET_COOKIE] = sessionCookie(request.headers, '', 0)
        set.status = 204
        delete set.headers['content-type']
      },
      described({
        section,
        right: 'any',
        summary: 'Sign out',
        description: 'Ends the session of the cookie, and what it still reads. The answer removes the cookie.',
        answers: { 204: empty('The session has ended, if there was one.') },
      }),
    )
    .post(
      `${SESSION_PATH}/links`,
      ({ request, route, set }): SessionLink => {
        if (sessions === undefined) return {}
        const caller = callerOf(request)
        const { code, expiresAt } = sessions.newLink({ caller })
        audit?.tell({ request, route, set }, caller?.grant.name, 200)
        return { code, expires: isoTime(expiresAt) }
      },
      described({
        section,
        right: 'any',
        summary: 'Make a link that signs in once',
        description: `For ${SIGN_IN_LINK_MS / 1_000} s, with the rights of the token of this request. It takes a token: a session makes none.`,
        answers: { 200: json(SessionLink, 'The code of the link. Empty if the service needs no token.') },
      }),
    )
}

const shown = (by: SessionResponse['by'], { caller }: Identity, expiresAt: number | undefined): SessionResponse => ({
  by,
  ...(caller !== undefined && { name: caller.grant.name }),
  ...(caller?.grant.tenant !== undefined && { tenant: caller.grant.tenant }),
  rights: [...(caller?.grant.rights ?? RIGHTS)],
  ...(caller?.grant.types !== undefined && { types: [...caller.grant.types] }),
  ...(expiresAt !== undefined && Number.isFinite(expiresAt) && { expires: isoTime(expiresAt) }),
})

/** The token or the code of a request to sign in. Throws 400 and 413. */
async function credentialIn(app: AnyElysia, request: Request, unknownFields: UnknownFields): Promise<SignInRequest> {
  const bearer = bearerIn(request.headers.get('authorization'))
  const body = await readBody(app, request, MAX_SESSION_BODY_BYTES)
  const given = body.length === 0 && bearer !== undefined ? {} : runSync(decodeJson(body, {}))
  refuseWrongForm(given, SignInRequest)
  refuseUnknownFields(given, { names: Object.keys(SignInRequest.properties) }, unknownFields)
  const { token = bearer, code } = given
  if ((token === undefined) === (code === undefined))
    throw badRequest('sign in with one of both: a token, in the body or in Authorization: Bearer, or a code')
  return code === undefined ? { token: token! } : { code }
}
