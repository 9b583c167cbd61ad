/** Whether a service can be started at an address from this machine. Pure. */

export interface StartAddress {
  /** The IP address to listen on. */
  readonly hostname: string
  readonly port: number
  /** `host:port`, IPv6 in brackets. */
  readonly listen: string
}

/** Whether `baseUrl` is certainly on this machine. */
export function isLoopback(baseUrl: string): boolean {
  const { hostname, protocol } = new URL(baseUrl)
  return (
    protocol === 'unix:' || hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
  )
}

/** The address at which a service has to listen to be reachable at `baseUrl`, or why none can be started here. */
export function startAddress(baseUrl: string): StartAddress | string {
  const url = new URL(baseUrl)
  if (url.protocol === 'unix:') return 'it is a Unix socket (taskmill up --socket starts services on sockets)'
  if (!isLoopback(baseUrl)) return 'it is not on this machine (only loopback addresses are started)'
  if (url.protocol !== 'http:') return 'what is started here speaks http, not https'
  if (url.pathname !== '/') return 'what is started here has no path before its routes'
  const hostname = url.hostname === 'localhost' ? '127.0.0.1' : url.hostname.replace(/^\[|\]$/g, '')
  const port = url.port === '' ? 80 : Number(url.port)
  if (port === 0) return 'port 0 cannot be reached'
  return { hostname, port, listen: `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}` }
}
