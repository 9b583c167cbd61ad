/**
 * Ends TLS of a client, where rules are about the requests inside. Bun ends TLS of sockets that it accepts, so the bytes go
 * through a socket of our own.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Certificate } from './authority.ts'
import { Endpoint, HTTP_1 } from './endpoint.ts'
import { relay } from './relay.ts'

let count = 0

/**
 * What is inside the TLS of a client, whose ClientHello is still to be read; undefined if the handshake fails. Only the user of
 * the service may enter `directory`.
 */
export async function endTls(
  client: Endpoint,
  directory: string,
  certificate: Certificate,
): Promise<Endpoint | undefined> {
  const unix = join(directory, `.${(count++).toString(36)}`)
  const inner = Promise.withResolvers<Endpoint | undefined>()
  const outer = Promise.withResolvers<Endpoint>()
  const listener = Bun.listen<Endpoint | undefined>({
    ...{ unix, allowHalfOpen: true, data: undefined },
    tls: { ...certificate, ALPNProtocols: HTTP_1 },
    socket: {
      ...Endpoint.handlers(() => {}),
      handshake: ({ data }, isDone) => inner.resolve(isDone ? data : undefined),
    },
  })
  try {
    await Bun.connect({ unix, allowHalfOpen: true, data: undefined, socket: Endpoint.handlers(outer.resolve) })
    const end = await outer.promise
    const pass = () => true
    void Promise.all([relay(client, end, pass), relay(end, client, pass)])
    return await Promise.race([inner.promise, end.closed.then(() => undefined)])
  } finally {
    listener.stop()
    rmSync(unix, { force: true })
  }
}
