/**
 * A proxy between a client and PostgreSQL that cuts the connection on demand: before a statement arrives, or after it was
 * executed and before its answer arrives.
 */
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

export interface CuttingLink extends AsyncDisposable {
  /** `url` through this link. */
  through(url: string): string
  /** Cuts the connection of the next statement that is executed, once. */
  cut(when: 'before the request' | 'before the answer'): void
  /** How often a connection was cut. */
  readonly cuts: number
}

/** An Execute message of the unnamed portal. */
const EXECUTE = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0])

/** A CommandComplete message, as text of bytes. */
const COMPLETE = /C\0\0\0.(SELECT|UPDATE|INSERT) /s

export async function startCuttingLink(serverPort: number): Promise<CuttingLink> {
  let armed: 'before the request' | 'before the answer' | undefined
  let cuts = 0
  const sockets = new Set<Socket>()
  const port = await freePort()
  const server = createServer((client) => {
    const upstream = connect(serverPort, '127.0.0.1')
    let isExecuting = false
    const cut = () => {
      armed = undefined
      cuts++
      client.destroy()
      upstream.destroy()
    }
    client.on('data', (chunk: Buffer) => {
      const isExecute = chunk.includes(EXECUTE)
      if (isExecute && armed === 'before the request') return cut()
      isExecuting = isExecute && armed === 'before the answer'
      upstream.write(chunk)
    })
    upstream.on('data', (chunk: Buffer) => {
      if (isExecuting && armed === 'before the answer' && COMPLETE.test(chunk.toString('latin1'))) return cut()
      client.write(chunk)
    })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
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
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
