/** The token of the service. It is kept for the tab only. */

const TOKEN_KEY = 'taskmill-token'

/** Read once: the browser asks another process for it, and waits. */
let kept: string | null | undefined

export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token)
  kept = token
}

/** The headers that carry the token, if there is one. */
export function tokenHeaders(): Record<string, string> {
  if (kept === undefined) kept = sessionStorage.getItem(TOKEN_KEY)
  return kept === null ? {} : { authorization: `Bearer ${kept}` }
}
