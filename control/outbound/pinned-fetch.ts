/**
 * `fetch` for URLs of callers. Under the policy `public` it connects to an address that the guard has checked.
 *
 * The URL that Bun gets has the address as its host. The `Host` header names the host, and TLS asks for and verifies its
 * name. Redirects are not followed, as each needs a check of its own. No proxy is used: it would look up the name itself.
 */

import { systemCodeOf } from '../../shared/contract/errors.ts'
import { hostOf } from '../../shared/egress/host.ts'
import { neverConnected } from '../../shared/http/connection-fault.ts'
import type { AddressGuard } from './address-guard.ts'
import type { CarriedSecrets } from './carried-secrets.ts'

export interface PinnedRequest {
  readonly method: string
  readonly headers: Headers
  /** Sent once more to the next address if there was no connection to the first. */
  readonly body: string | null
  readonly signal: AbortSignal
  readonly tls?: { readonly ca: string }
  /** What the request carries, which may not go to every host. */
  readonly secrets?: CarriedSecrets | undefined
}

/** Addresses of one name that are tried, one after the other. */
const MAX_TRIED_ADDRESSES = 8

/** Throws `AddressRefused`, `SecretRefused`, or what `fetch` throws. */
export async function pinnedFetch(
  guard: AddressGuard,
  url: URL,
  { secrets, ...request }: PinnedRequest,
): Promise<Response> {
  secrets?.check(url, request.headers)
  const init = { ...request, redirect: 'manual' } as const
  if (guard.policy === 'any') return fetch(url, init)
  const addresses = (await guard.addressesFor(url, request.signal)).slice(0, MAX_TRIED_ADDRESSES)
  const host = hostOf(url.hostname)!
  const headers = new Headers(request.headers)
  if (!headers.has('host')) headers.set('host', url.host)
  const tls = { ...request.tls, ...('name' in host && { serverName: host.name }) }
  for (const [i, address] of addresses.entries()) {
    try {
      return await fetch(pinned(url, address), { ...init, headers, tls, proxy: false })
    } catch (error) {
      const isLast = i === addresses.length - 1
      if (isLast || request.signal.aborted || !isUnreachable(error)) throw error
    }
  }
  throw new Error('no address was tried') // addressesFor returns at least one
}

const isUnreachable = (error: unknown): boolean => neverConnected(error) || systemCodeOf(error) === 'ENETUNREACH'

function pinned(url: URL, address: string): URL {
  const pinnedUrl = new URL(url)
  pinnedUrl.hostname = address.includes(':') ? `[${address}]` : address
  return pinnedUrl
}
