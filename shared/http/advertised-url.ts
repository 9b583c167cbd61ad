/** The address under which other machines reach a service. */
import { hostname } from 'node:os'

/** Stand for all interfaces. */
const ANY_ADDRESSES = ['0.0.0.0', '[::]']

/**
 * `advertise` if it is set, else the address that is listened on, with the host name for all interfaces. Empty for a Unix
 * socket, which other machines do not reach.
 */
export function advertisedUrl(advertise: string, listening: string): string {
  if (advertise !== '') return advertise.replace(/\/+$/, '')
  const url = new URL(listening)
  if (url.protocol !== 'http:') return ''
  if (ANY_ADDRESSES.includes(url.hostname)) url.hostname = hostname()
  return url.href.replace(/\/+$/, '')
}

/** The name that other machines send as `Host`. */
export const advertisedHost = (advertise: string): string =>
  advertise === '' ? hostname() : new URL(advertise).hostname
