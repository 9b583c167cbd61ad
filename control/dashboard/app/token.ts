/** The token of the service. It is kept for the tab only. */

const TOKEN_KEY = 'taskmill-token'

export const keepToken = (token: string): void => sessionStorage.setItem(TOKEN_KEY, token)

/** The headers that carry the token, if there is one. */
export function tokenHeaders(): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN_KEY)
  return token === null ? {} : { authorization: `Bearer ${token}` }
}
