/**
 * A proxy between a client and PostgreSQL that cuts the connection of a statement on demand: before the statement arrives,
 * before or around its commit, or after it and before its answer arrives. It can also hold back all that is sent, and so
 * deliver it late.
 */
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

export type Cut = 'before the request' | 'before the commit' | 'around the commit' | 'before the answer'

export interface CuttingLink extends AsyncDisposable {
  /** `url` through this link. */
  through(url: string): string
  /** Cuts the connection of the next statement that is executed, once. */
  cut(when: Cut): void
  /** How often a connection was cut. */
  readonly cuts: number
  /** Holds back all bytes of all connections, until `release`. */
  hold(): void
  /** Delivers what was held back, also what its client no longer waits for. */
  release(): void
}

/** An Execute message of the unnamed portal. */
const EXECUTE = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0])

/** A Sync message: the server commits what came before. */
const SYNC = Buffer.from([0x53, 0, 0, 0, 4])

/** A CommandComplete message, as text of bytes. */
const COMPLETE = /C\0\0\0.(SELECT|UPDATE|INSERT) /s

export async function startCuttingLink(serverPort: number): Promise<CuttingLink> {
  let armed: Cut | undefined
  let cuts = 0
  let isHolding = false
  const sockets = new Set<Socket>()
  const port = await freePort()
  const server = createServer((client) => {
    const upstream = connect(serverPort, '127.0.0.1')
    let isExecuting = false
    let isLeaving = false
    const cut = () => {
      armed = undefined
      cuts++
      client.destroy()
      upstream.destroy()
    }
    /** Sends the last bytes and leaves. Nobody hears what the server makes of them. */
    const cutAfter = (bytes: Buffer) => {
      armed = undefined
      cuts++
      isLeaving = true
      upstream.end(bytes)
      client.destroy()
    }
    client.on('data', (chunk: Buffer) => {
      const isExecute = chunk.includes(EXECUTE)
      if (isExecute && armed === 'before the request') return cut()
      if (isExecute && armed === 'around the commit') return cutAfter(chunk)
      if (isExecute && armed === 'before the commit' && chunk.subarray(-SYNC.length).equals(SYNC))
        return cutAfter(chunk.subarray(0, -SYNC.length))
      isExecuting = isExecute && armed === 'before the answer'
      upstream.write(chunk)
    })
    upstream.on('data', (chunk: Buffer) => {
      if (isExecuting && armed === 'before the answer' && COMPLETE.test(chunk.toString('latin1'))) return cut()
      if (!client.destroyed) client.write(chunk)
    })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      if (isHolding) socket.pause()
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        if (!isLeaving) other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    through: (url) => url.replace(`:${serverPort}/`, `:${port}/`),
    cut: (when) => {
      armed = when
    },
    get cuts() {
      return cuts
    },
    hold: () => {
      isHolding = true
      for (const socket of sockets) socket.pause()
    },
    release: () => {
      isHolding = false
      for (const socket of sockets) socket.resume()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
