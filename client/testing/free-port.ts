/** Ports that nobody listens on, and that the system does not assign to listeners on port 0. */
import { readFileSync } from 'node:fs'

/** The lowest port from which services of ours and of others are usually not. */
const FIRST_PORT = 20_000

/** The first port that the system itself gives to listeners on port 0 and to connections. */
function firstEphemeralPort(): number {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/)[0])
  } catch {
    return 49_152 // not Linux
  }
}

/**
 * A port that a service of the test may listen on, or that refuses connections until then. Others can take it only by
 * its number: one that was closed again just now would be the next one that the system gives away.
 */
export async function freePort(): Promise<number> {
  const ports = firstEphemeralPort() - FIRST_PORT
  if (ports <= 0) throw new Error('net.ipv4.ip_local_port_range leaves no port above 20000 for tests: raise its start')
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * ports)
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
      return port
    } catch {
      // in use
    }
  }
}
