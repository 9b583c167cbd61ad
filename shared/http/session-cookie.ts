/**
 * The cookie of a session. Pure.
 *
 * Browsers share cookies among all ports of a host, so its name has the port under which the page was opened.
 */

/** 256 random bits in base64url. */
const VALUE = /^[\w-]{43}$/

const nameFor = (headers: Headers): string => {
  const port = /:(\d+)$/.exec(headers.get('host') ?? '')?.[1]
  return port === undefined ? 'taskmill-session' : `taskmill-session-${port}`
}

/** The value that a request carries; undefined without one. */
export function sessionCookieIn(headers: Headers): string | undefined {
  const cookies = headers.get('cookie')
  if (cookies === null) return undefined
  const prefix = `${nameFor(headers)}=`
  for (const cookie of cookies.split(';')) {
    const text = cookie.trim()
    if (text.startsWith(prefix) && VALUE.test(text.slice(prefix.length))) return text.slice(prefix.length)
  }
  return undefined
}

/** The `Set-Cookie` of an answer to a request with these headers. Zero seconds remove the cookie. */
export function sessionCookie(headers: Headers, value: string, seconds: number): string {
  const secure = isHttps(headers) ? '; Secure' : ''
  return `${nameFor(headers)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/** Whether the browser uses https. A proxy may have taken TLS off: it says so, or the page does in `Origin`. */
const isHttps = (headers: Headers): boolean =>
  headers.get('origin')?.toLowerCase().startsWith('https://') === true ||
  /^\s*https\s*(?:,|$)/i.test(headers.get('x-forwarded-proto') ?? '')
