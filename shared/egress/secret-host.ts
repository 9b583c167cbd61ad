/**
 * Where a secret may be sent: an entry of `hosts` in `--secrets-rules`. Pure.
 *
 * | entry | the secret goes to |
 * | --- | --- |
 * | `api.example.com` | this host over TLS, at port 443 |
 * | `*.example.org:8443` | every host below this name over TLS, at this port |
 * | `10.0.0.0/8:8443` | these addresses, if a URL names one |
 * | `http://localhost:8080` | this host without TLS; the default port is 80 |
 * | `mcp:search` | the MCP server of this name in `--mcp-config`, whatever its transport |
 */
import { type Host, hostOf, hostText } from './host.ts'
import { coversAddress, coversName, coversPort, NotARule, parseRule } from './rule.ts'

/** What a secret would be sent to. */
export type SecretTarget =
  | { readonly host: Host; readonly port: number; readonly isTls: boolean }
  | { readonly server: string }

/** Whether an entry covers a target. */
export type SecretHost = (target: SecretTarget) => boolean

const PLAIN = 'http://'
const SERVER = 'mcp:'

/** Parses an entry. Throws `NotARule`. */
export function parseSecretHost(text: string): SecretHost {
  if (text.startsWith(SERVER)) {
    const name = text.slice(SERVER.length)
    if (name === '') throw new NotARule('expected the name of an MCP server after "mcp:"')
    return (target) => 'server' in target && target.server === name
  }
  const isTls = !text.startsWith(PLAIN)
  const { port = isTls ? 443 : 80, ...hosts } = parseRule(isTls ? text : text.slice(PLAIN.length))
  const rule = { ...hosts, port }
  return (target) => {
    if ('server' in target || target.isTls !== isTls || !coversPort(rule, target.port)) return false
    const { host } = target
    return 'name' in host ? coversName(rule, host.name) : coversAddress(rule, host.address)
  }
}

/** Undefined for a URL whose host is none. */
export function secretTargetOf({ hostname, port, protocol }: URL): SecretTarget | undefined {
  const host = hostOf(hostname)
  const isTls = protocol === 'https:'
  return host && { host, port: Number(port) || (isTls ? 443 : 80), isTls }
}

/** The entry that covers just this target. */
export function secretTargetText(target: SecretTarget): string {
  if ('server' in target) return SERVER + target.server
  const { host, port, isTls } = target
  const text = hostText(host)
  const name = text.includes(':') ? `[${text}]` : text
  return `${isTls ? '' : PLAIN}${name}${port === (isTls ? 443 : 80) ? '' : `:${port}`}`
}
