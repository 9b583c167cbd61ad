/**
 * The beginning of TLS in a tunnel: the first message of the client, and that the server answers it.
 *
 * A server of another protocol might read what a client sends after a ClientHello as lines of its own. So the rest is passed
 * on only to a server that has answered in TLS.
 */
import type { Host } from '../../shared/egress/host.ts'
import type { Endpoint } from './endpoint.ts'
import { gather } from './gather.ts'
import type { Meter } from './relay.ts'
import { helloRefusal, type Refusal } from './verdict.ts'
import { type ClientHello, MAX_HELLO_BYTES, readClientHello, TLS_ALERT, TLS_HANDSHAKE } from './wire/client-hello.ts'

export interface TlsSides {
  readonly client: Endpoint
  readonly server: Endpoint
  readonly sent: Meter
  /** Called once the client has said what it has to. */
  readonly onHello: () => void
}

/** `begun`: the rest may be passed on. `gone`: one side has ended. Else the refusal. Throws `Malformed`. */
export async function beginTls(
  host: Host,
  { client, server, sent, onHello }: TlsSides,
): Promise<'begun' | 'gone' | Refusal> {
  const found = await gatherHello(client)
  if (found === undefined) return 'gone'
  onHello()
  const { hello, bytes } = found
  const refusal = helloRefusal(hello, host)
  if (refusal !== undefined) return refusal
  void client.closed.then(() => server.destroy())
  if (!sent(bytes.length) || !(await server.write(bytes))) return 'gone'
  const first = await server.read()
  if (first === undefined) return 'gone'
  server.unread(first)
  return first[0] === TLS_HANDSHAKE || first[0] === TLS_ALERT ? 'begun' : { kind: 'protocol' }
}

const gatherHello = (client: Endpoint) =>
  gather(client, MAX_HELLO_BYTES, (bytes) => {
    const hello = readClientHello(bytes)
    return hello && { found: { hello, bytes: Uint8Array.from(bytes.subarray(0, hello.length)) }, length: hello.length }
  })

/** The ClientHello, which stays to be read. Undefined if the client ends before. Throws `Malformed`. */
export async function peekHello(client: Endpoint): Promise<ClientHello | undefined> {
  const found = await gatherHello(client)
  if (found !== undefined) client.unread(found.bytes)
  return found?.hello
}
