/** Signing in: with a token, or with the link of `taskmill open`. The service then knows the page by a cookie. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { SignInRequest } from '../../../shared/contract/session.ts'
import { signInCode } from '../model/session.ts'
import { request } from './api.ts'
import { faultOf } from './fault.ts'
import { Note } from './parts.tsx'

/** Throws `ApiError`. */
const signIn = (credential: SignInRequest): Promise<Response> =>
  request('/session', { method: 'POST', body: JSON.stringify(credential) })

/** Signs in if the page was opened with a link, and takes its code out of the address. Returns why that failed. */
export async function signInByLink(): Promise<string | undefined> {
  const code = signInCode(location.hash)
  if (code === undefined) return undefined
  history.replaceState(null, '', '#/graphs')
  try {
    await signIn({ code })
    return undefined
  } catch (error) {
    return faultOf(error).message
  }
}

export function SignIn({ linkFault, onSignedIn }: { linkFault: string | undefined; onSignedIn: () => void }) {
  const [token, setToken] = useState('')
  const [fault, setFault] = useState(linkFault)
  const [isSending, setIsSending] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const send = async () => {
    setFault(undefined)
    setIsSending(true)
    try {
      await signIn({ token: token.trim() })
      onSignedIn()
    } catch (error) {
      setFault(faultOf(error).message)
      setIsSending(false)
    }
  }
  return (
    <main class="token-page">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <h1>Sign in to taskmill</h1>
        <p>
          With a token of this service: one of <code>taskmill token create</code>, or the one that the service was
          started with. <code>taskmill open</code> opens this page without typing it.
        </p>
        {fault !== undefined && <Note kind="fault">Not signed in: {fault}.</Note>}
        <label for="token">Token</label>
        <input
          id="token"
          ref={field}
          type="password"
          autocomplete="current-password"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={isSending || token.trim() === ''}>
          Sign in
        </button>
      </form>
    </main>
  )
}
