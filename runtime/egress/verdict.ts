/** What the proxy decides about a connection, and in which words. Pure. */
import type { AddressClass } from '../../shared/egress/address-class.ts'
import { type Host, hostOf, hostText } from '../../shared/egress/host.ts'
import type { Refusal as RuleRefusal } from '../../shared/egress/rules.ts'
import { type Authority, isSameHost } from '../plan/authority.ts'
import type { ClientHello } from './wire/client-hello.ts'

/** Why a connection is refused. */
export type Refusal =
  | RuleRefusal
  /** It is a service of ours. */
  | { readonly kind: 'never' }
  /** TLS asks for another server than the one of the connection. */
  | { readonly kind: 'server_name'; readonly found: string }
  /** The server that is asked for cannot be seen. */
  | { readonly kind: 'hidden_name' }
  /** Neither TLS nor HTTP, or nothing at all. */
  | { readonly kind: 'protocol' }
  | { readonly kind: 'malformed'; readonly why: string }
  /** The rules for its host let no such request pass. */
  | { readonly kind: 'request'; readonly rule: string; readonly what: string }
  /** The rule adds a secret, which the task may not send there, or which is missing. */
  | { readonly kind: 'secret'; readonly why: string }
  /** What a WebSocket carries cannot be masked. */
  | { readonly kind: 'websocket'; readonly rule: string }
  /** The client has broken off TLS with the proxy. */
  | { readonly kind: 'handshake' }
  | { readonly kind: 'max_bytes' }
  | { readonly kind: 'max_connections' }
  /** The service has ended, or was killed. */
  | { readonly kind: 'restart' }
  /** The task has its own part of the connections that the service allows, and the common part is used up. */
  | { readonly kind: 'busy' }

export const PROTOCOLS = ['http', 'connect', 'socks5'] as const
/** How the task asked for the connection. */
export type Protocol = (typeof PROTOCOLS)[number]

const CLASS_WORDS: Readonly<Record<AddressClass, string>> = {
  public: 'public',
  loopback: 'loopback',
  private: 'private',
  'link-local': 'link-local',
  'unique-local': 'unique local',
  cgnat: 'shared by a provider (CGNAT)',
  metadata: 'that of a metadata service',
  multicast: 'multicast',
  broadcast: 'broadcast',
  unspecified: 'unspecified',
  reserved: 'reserved',
}

/** A clause: `no rule of sandbox.network.allow covers it`. */
export function reasonText(refusal: Refusal): string {
  switch (refusal.kind) {
    case 'denied':
      return `the rule ${refusal.rule} denies it`
    case 'unlisted':
      return 'no rule of sandbox.network.allow, or of --egress-allow, covers it'
    case 'class':
      return `its address is ${CLASS_WORDS[refusal.addressClass]}, and no rule of sandbox.network.allow names it by address`
    case 'never':
      return 'it is a service of taskmill, which no rule reaches'
    case 'server_name':
      return `TLS asks for another server, ${JSON.stringify(refusal.found)}`
    case 'hidden_name':
      return 'TLS hides which server it asks for (a rule may end with " opaque")'
    case 'protocol':
      return 'it carries neither TLS nor HTTP (a rule may end with " opaque")'
    case 'malformed':
      return `the client sent ${refusal.why}`
    case 'request':
      return `the rule ${refusal.rule} does not let ${refusal.what} pass`
    case 'secret':
      return refusal.why
    case 'websocket':
      return `the rule ${refusal.rule} adds a secret, and no WebSocket gets one`
    case 'handshake':
      return 'the client does not trust the certificate of the proxy (SSL_CERT_FILE has it), or does not speak HTTP/1.1'
    case 'max_bytes':
      return 'the task has used sandbox.network.max_bytes'
    case 'max_connections':
      return 'the task has sandbox.network.max_connections open'
    case 'restart':
      return 'the service was restarted'
    case 'busy':
      return 'the task has its own part of --max-egress-connections open, and all tasks together the common part'
  }
}

/** Characters of a server name that are told. */
const MAX_SHOWN_NAME = 253

/** Names in ASCII only: others could be mapped to another name than the one that the server reads. */
const SERVER_NAME = /^[\w.-]+$/

/** Why TLS that begins so may not go to `host`. Undefined if it may. For an address there is no name to ask for. */
export function helloRefusal({ serverName, isEncrypted }: ClientHello, host: Host): Refusal | undefined {
  if (serverName === undefined && 'address' in host) return undefined
  if (serverName === undefined || isEncrypted) return { kind: 'hidden_name' }
  const named = SERVER_NAME.test(serverName) ? hostOf(serverName) : undefined
  return named !== undefined && isSameHost(named, host)
    ? undefined
    : { kind: 'server_name', found: serverName.slice(0, MAX_SHOWN_NAME) }
}

export const targetText = ({ host, port }: Authority): string => {
  const text = hostText(host)
  return `${text.includes(':') ? `[${text}]` : text}:${port}`
}
