/** Passes bytes between two ends of a connection, each way at the speed of its receiver. */
import type { Endpoint } from './endpoint.ts'

/** Called before bytes are passed on. False: they may not be, and nothing more is. */
export type Meter = (bytes: number) => boolean

/**
 * Passes on what `from` sends until it ends; then ends `to`. If `from` breaks off, so does `to`. If `to` is gone, this
 * returns, and what `to` sent before is still passed on by the relay of the other way.
 */
export async function relay(from: Endpoint, to: Endpoint, meter: Meter): Promise<void> {
  await pass(from, to, meter, () => {})
}

/**
 * The same from a server to a client. A server sends nothing more while the client takes nothing: a thousand clients that
 * do not read shall hold little. The other way, a client that waits has to be heard when it leaves.
 */
export async function relayAnswer(server: Endpoint, client: Endpoint, meter: Meter): Promise<void> {
  await pass(server, client, meter, () => server.pause())
}

async function pass(from: Endpoint, to: Endpoint, meter: Meter, onBlocked: () => void): Promise<void> {
  for (;;) {
    const bytes = await from.read()
    if (bytes === undefined) {
      if (from.isBroken) to.destroy()
      else to.end()
      return
    }
    if (!meter(bytes.length)) return
    const writing = to.write(bytes)
    if (to.isBlocked) onBlocked()
    if (!(await writing)) return
  }
}
