/** A host with a port, as in `Host` headers and in the target of a request. Pure. */
import { type Host, hostOf, hostText } from '../../shared/egress/host.ts'

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
