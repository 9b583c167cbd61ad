/**
 * Who is signed in with a browser. A session begins with a token, or with a link that was made with one and works once. It may
 * what that token may, and ends at its time, when somebody signs out, and as soon as the token is revoked, changed or expires.
 *
 * Sessions are in memory: a restart of the service ends them. Only hashes of the values that browsers send are kept.
 */
import type { Caller, Identity, Session } from './callers.ts'

/** Sessions of one token. A further one ends the oldest. */
export const MAX_SESSIONS_OF_TOKEN = 20

/** Links that nobody has used yet. A further one voids the oldest. */
export const MAX_SIGN_IN_LINKS = 100

/** Milliseconds for which a link works. */
export const SIGN_IN_LINK_MS = 60_000

interface OpenSession extends Session {
  end(): void
}

interface Link extends Identity {
  readonly expiresAt: number
}

export class Sessions {
  readonly identify: (token: string) => Identity | undefined
  readonly #ttlMs: number
  /** By the hash of the value, the oldest first. */
  readonly #open = new Map<string, OpenSession>()
  readonly #links = new Map<string, Link>()

  /** `identify` says whose a token is; undefined for one that is not good. */
  constructor(identify: (token: string) => Identity | undefined, ttlMs: number) {
    this.identify = identify
    this.#ttlMs = ttlMs
  }

  /** A new session, and the value of its cookie. */
  begin({ caller }: Identity): { readonly value: string; readonly session: Session } {
    const own = [...this.#open.values()].filter((session) => session.caller === caller)
    if (own.length >= MAX_SESSIONS_OF_TOKEN) own[0]!.end()
    const value = newValue()
    const hash = hashOf(value)
    const ending = new AbortController()
    const now = Date.now()
    const expiresAt = Math.min(now + this.#ttlMs, caller?.expiresAt ?? Number.POSITIVE_INFINITY)
    const end = () => {
      clearTimeout(timer)
      caller?.signal.removeEventListener('abort', end)
      this.#open.delete(hash)
      ending.abort()
    }
    const timer = setTimeout(end, expiresAt - now).unref()
    caller?.signal.addEventListener('abort', end, { once: true })
    const session = { caller, expiresAt, signal: ending.signal, end }
    this.#open.set(hash, session)
    return { value, session }
  }

  /** The session with this cookie value; undefined if it has ended. */
  find(value: string | undefined): Session | undefined {
    return this.#found(value)
  }

  /** Ends the session with this cookie value, if there is one. */
  end(value: string | undefined): void {
    this.#found(value)?.end()
  }

  /** A code that begins one session of this caller, and the time until which it does. */
  newLink({ caller }: Identity): { readonly code: string; readonly expiresAt: number } {
    const now = Date.now()
    for (const [hash, link] of this.#links)
      if (link.expiresAt <= now || this.#links.size >= MAX_SIGN_IN_LINKS) this.#links.delete(hash)
    const code = newValue()
    const expiresAt = now + SIGN_IN_LINK_MS
    this.#links.set(hashOf(code), { caller, expiresAt })
    return { code, expiresAt }
  }

  /** Whose link it is; undefined for one that is unknown, used, too old, or of a token that is not good any more. */
  useLink(code: string): Identity | undefined {
    const hash = hashOf(code)
    const link = this.#links.get(hash)
    this.#links.delete(hash)
    return link !== undefined && link.expiresAt > Date.now() && isGood(link.caller) ? link : undefined
  }

  #found(value: string | undefined): OpenSession | undefined {
    const session = value === undefined ? undefined : this.#open.get(hashOf(value))
    return session !== undefined && session.expiresAt > Date.now() ? session : undefined
  }
}

const isGood = (caller: Caller | undefined): boolean =>
  caller === undefined || (!caller.signal.aborted && (caller.expiresAt ?? Number.POSITIVE_INFINITY) > Date.now())

const VALUE_BYTES = 32

const newValue = (): string =>
  crypto.getRandomValues(new Uint8Array(VALUE_BYTES)).toBase64({ alphabet: 'base64url', omitPadding: true })

const hashOf = (value: string): string => new Bun.CryptoHasher('sha256').update(value).digest('base64')
