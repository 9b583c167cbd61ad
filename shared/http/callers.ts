/**
 * Who sent a request. The guard says it, and everything else asks here.
 *
 * A caller with a token of the tokens file has a name and rights. One with the token of the service, or without a token where
 * none is needed, is nobody in particular and may do everything: `callerOf` is undefined for it.
 */
import { ServiceError } from '../contract/errors.ts'
import type { Right } from '../contract/rights.ts'
import { type Grant, grantIn, grantText } from './token-entries.ts'

/** A caller with a name. */
export interface Caller {
  readonly grant: Grant
  /** Fires once its token is revoked, changed or expired. What it still reads ends then. */
  readonly signal: AbortSignal
  /** Milliseconds since 1970. Absent if the token does not expire. */
  readonly expiresAt?: number
}

/** Whose a token is. Without a caller, it is that of the service. */
export interface Identity {
  readonly caller: Caller | undefined
}

/** A browser that has signed in with a token. */
export interface Session extends Identity {
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** Fires at its end. */
  readonly signal: AbortSignal
}

const callers = new WeakMap<Request, Caller>()

/** Of requests with a session, which may end before the token does. */
const sessions = new WeakMap<Request, Session>()

export const callerOf = (request: Request): Caller | undefined => callers.get(request)

/** For the guard. */
export const setCaller = (request: Request, caller: Caller): void => void callers.set(request, caller)

/** The session of a request that carries its cookie and no token. */
export const sessionOf = (request: Request): Session | undefined => sessions.get(request)

/** For the guard. */
export function setSession(request: Request, session: Session): void {
  sessions.set(request, session)
  if (session.caller !== undefined) setCaller(request, session.caller)
}

/** Fires when the request has to end, because its session or its token does. */
const endOf = (request: Request): AbortSignal | undefined => (sessionOf(request) ?? callerOf(request))?.signal

/** Whether the caller may do it. Whoever may cancel anything may cancel its own. */
export const hasRight = (caller: Caller | undefined, right: Right): boolean =>
  caller === undefined ||
  caller.grant.rights.includes(right) ||
  (right === 'cancel_own' && caller.grant.rights.includes('cancel'))

/** Whether its tasks may run in a strict sandbox only: it has a tenant, and lacks the right `host`. */
export const isFenced = (caller: Caller | undefined): caller is Caller =>
  caller?.grant.tenant !== undefined && !hasRight(caller, 'host')

/** Throws 403. */
export function ensureRight(caller: Caller | undefined, right: Right): void {
  if (!hasRight(caller, right)) throw lacking(caller!, right)
}

/** The refusal of a caller without a right. */
export const lacking = ({ grant }: Caller, right: Right | 'service'): ServiceError =>
  new ServiceError(
    403,
    right === 'service'
      ? `only the token of the service may do this, not the token ${grant.name}`
      : `the token ${grant.name} lacks the right ${right} (give it that right in the tokens file, or use another token)`,
    { headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${right}"` } },
  )

/** Throws 403 for a caller with a tenant. `what` is what it asks for, such as `GET /metrics`. */
export function ensureOfService(what: string, caller: Caller | undefined): void {
  if (caller?.grant.tenant === undefined) return
  const { name, tenant } = caller.grant
  throw new ServiceError(403, `${what} belongs to the whole service: the token ${name} is of tenant ${tenant}`)
}

/**
 * The header in which a replica tells another one who sent the request that it passes on. It counts only beside the token of
 * the service, which callers with names do not have.
 */
export const CALLER_HEADER = 'x-taskmill-caller'

/** For the request that goes to another replica. */
export function passOnCaller(headers: Headers, caller: Caller | undefined): void {
  headers.delete(CALLER_HEADER)
  if (caller !== undefined) headers.set(CALLER_HEADER, encodeURIComponent(grantText(caller.grant)))
}

/** Callers that other replicas have told of are remembered, so that their quotas count. */
const MAX_PASSED_ON = 1_000

/** That of the replica which passes the request on says when it ends. */
const NEVER = new AbortController().signal

export class PassedOnCallers {
  readonly #known = new Map<string, Caller>()

  /** The caller in the header; undefined without one. Throws 403 for one that is damaged. */
  callerIn(headers: Headers): Caller | undefined {
    const text = headers.get(CALLER_HEADER)
    if (text === null) return undefined
    const known = this.#known.get(text)
    if (known !== undefined) return known
    let caller: Caller
    try {
      caller = { grant: grantIn(decodeURIComponent(text)), signal: NEVER }
    } catch {
      throw new ServiceError(403, `invalid ${CALLER_HEADER}: replicas of different versions share the database`)
    }
    if (this.#known.size === MAX_PASSED_ON) this.#known.clear()
    this.#known.set(text, caller)
    return caller
  }
}

/** `signal`, which also fires when the token or the session of the caller is no longer good. */
export function whileAllowed(request: Request, signal: AbortSignal = request.signal): AbortSignal {
  const end = endOf(request)
  return end === undefined ? signal : AbortSignal.any([signal, end])
}

/** `answer`, whose body ends with the token or the session of the caller. For bodies without an end of their own. */
export function endingWithToken(request: Request, answer: Response): Response {
  const end = endOf(request)
  if (end === undefined || answer.body === null) return answer
  const { status, headers } = answer
  return new Response(untilFired(answer.body, end), { status, headers })
}

function untilFired(body: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const leave = () => void reader.cancel().catch(() => {}) // a pending read ends with it
  signal.addEventListener('abort', leave, { once: true })
  const done = () => signal.removeEventListener('abort', leave)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (signal.aborted) leave()
        const { done: isDone, value } = await reader.read()
        if (!isDone) return controller.enqueue(value)
        done()
        controller.close()
      },
      cancel(reason) {
        done()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
