/** Free ports on 127.0.0.1. */

export interface PortWish {
  /** The port that must be taken. */
  readonly named: number | undefined
  /** Ports to prefer, the best first. */
  readonly preferred: readonly number[]
}

/** The named port if it is free, else undefined. Without one the first free port of the preferred, else any free port. */
export function freePort({ named, preferred }: PortWish, taken: readonly number[] = []): number | undefined {
  if (named !== undefined) return isFree(named) ? named : undefined
  return preferred.find((port) => !taken.includes(port) && isFree(port)) ?? anyPort()
}

export function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: HOST, port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false
  }
}

/** A port that the system picks. */
function anyPort(): number {
  const listener = Bun.listen({ hostname: HOST, port: 0, socket: { data() {} } })
  listener.stop(true)
  return listener.port
}

/** The port in a base URL; undefined if there is none, as for a Unix socket. */
export const portOf = (url: string | undefined): number | undefined =>
  Number(/:(\d+)$/.exec(url ?? '')?.[1]) || undefined

export const HOST = '127.0.0.1'
