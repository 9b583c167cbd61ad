/**
 * What a task with the network of the host has by its own choice, and what `doctor --escape` says of that sandbox. Pure.
 *
 * These attempts do there what the network of the host is for, so they are no escapes. All others have to be blocked as in
 * every sandbox.
 */
import type { Attempt } from './attempts.ts'

/** Names of attempts that this network lets through. */
export const HOST_NETWORK_HAS: ReadonlySet<string> = new Set([
  ...[
    'connect_loopback',
    'loopback_spellings',
    'connect_abstract',
    'secret_from_sockets',
    'host_sockets',
    'interfaces',
  ],
  ...['network_route', 'private_routes', 'neighbours', 'route_v6'],
  ...['dotted', 'decimal', 'octal', 'hexadecimal', 'mixed', 'short'].map((spelling) => `metadata_${spelling}`),
  ...['mapped', 'mapped_hexadecimal', 'translated', 'tunneled', 'v6'].map((spelling) => `metadata_${spelling}`),
])

/** Names of the attempts that got through and may, or why there was no such sandbox. */
export type HostNetwork = { readonly has: readonly string[] } | { readonly notTried: string }

/** The attempts of such a sandbox without those that it lets through, which do not apply to it, and the names of those. */
export function inHostNetwork(attempts: readonly Attempt[]): { attempts: Attempt[]; has: string[] } {
  const isGiven = ({ name, verdict }: Attempt) => verdict === 'open' && HOST_NETWORK_HAS.has(name)
  return {
    attempts: attempts.map((attempt) => (isGiven(attempt) ? { ...attempt, verdict: 'not_applicable' } : attempt)),
    has: attempts.filter(isGiven).map(({ name }) => name),
  }
}
