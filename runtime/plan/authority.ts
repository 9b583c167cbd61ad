/** A host with a port: in `Host` headers, in the target of a request, in settings. Pure. */
import { type Host, hostOf, hostText } from '../../shared/egress/host.ts'
import type { IpAddress } from '../../shared/egress/ip-address.ts'

export interface Authority {
  readonly host: Host
  readonly port: number
}

/** `text` in its normal form; undefined if it is none. Without `defaultPort`, a port is required. */
export function authorityOf(text: string, defaultPort?: number): Authority | undefined {
  const [, hostPart, portPart] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (hostPart === undefined) return undefined
  const host = hostOf(hostPart)
  const port = portPart === undefined ? defaultPort : Number(portPart)
  if (host === undefined || port === undefined || port < 1 || port > 65_535) return undefined
  return { host, port }
}

export const isSameHost = (a: Host, b: Host): boolean => bracketed(a) === bracketed(b)

/** As a URL has it: without a port that is the default. */
export const authorityText = ({ host, port }: Authority, defaultPort?: number): string =>
  port === defaultPort ? bracketed(host) : `${bracketed(host)}:${port}`

function bracketed(host: Host): string {
  const text = hostText(host)
  return text.includes(':') ? `[${text}]` : text
}

/** The address of a service. */
export interface ServiceAddress {
  readonly address: IpAddress
  readonly port: number
}

/** `10.0.0.5:8080`, `[::1]:8080`, `localhost:8080`; `:8080` has the unspecified address. Undefined for other texts. */
export function serviceAddressOf(text: string): ServiceAddress | undefined {
  const found = authorityOf(text.replace(/^localhost:/, '127.0.0.1:').replace(/^:/, '0.0.0.0:'))
  return found !== undefined && 'address' in found.host ? { address: found.host.address, port: found.port } : undefined
}
