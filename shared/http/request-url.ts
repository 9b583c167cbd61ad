/** The URL and the path of a request, as the caller sent them. */

/**
 * Without a Host, or with an empty one, the server puts the target of a request in place of its URL. Elysia then looks for
 * the path behind the first eleven characters, where it expects a scheme and a host. It finds another route, or no query.
 */
export const isWithoutHost = ({ url }: Request): boolean => url.startsWith('/')

/** The URL of a request, also if it came without a Host. */
export const urlOf = (request: Request): string =>
  isWithoutHost(request) ? `http://localhost${request.url}` : request.url

/** The last URL and its path: a request is asked for its path several times. */
let lastUrl = ''
let lastPath = ''

export function pathOf(request: Request): string {
  const url = urlOf(request)
  if (url === lastUrl) return lastPath
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  lastUrl = url
  lastPath = url.slice(start, end < 0 ? undefined : end)
  return lastPath
}

/** The server itself would replace malformed escapes and invalid UTF-8 by other characters. */
export function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
