/** A proxy before a service that cuts each connection after some bytes of its answers: later each time. */

import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

/** Bytes after which the first connection is cut, and by which the next ones last longer. */
const FIRST_BYTES = 1_500
const MORE_BYTES = 4_001

/** Milliseconds between the last bytes and the cut. A client loses what it has not read by then, and asks for it again. */
const READ_WITHIN_MS = 20

interface CuttingProxy extends AsyncDisposable {
  readonly url: string
  /** Connections that were cut so far. */
  readonly cuts: number
}

export async function cuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let cuts = 0
  let allowed = FIRST_BYTES
  const server = createServer((socket) => {
    const service = connect(Number(port), hostname)
    let left = allowed
    allowed += MORE_BYTES
    const end = () => {
      socket.destroy()
      service.destroy()
      sockets.delete(socket)
    }
    sockets.add(socket)
    socket.on('error', end).on('close', end)
    service.on('error', end).on('end', () => socket.end())
    socket.on('data', (bytes) => service.write(bytes))
    service.on('data', (bytes: Buffer) => {
      const passed = bytes.subarray(0, left)
      left -= passed.length
      if (left > 0) {
        socket.write(passed)
        return
      }
      if (service.destroyed) return
      cuts++
      service.destroy()
      socket.write(passed)
      setTimeout(end, READ_WITHIN_MS)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
