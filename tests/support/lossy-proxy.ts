/** A proxy before a service that passes requests on and can lose answers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface LossyProxy extends AsyncDisposable {
  readonly url: string
  /** Requests that arrived: method, path and query. */
  readonly requests: string[]
  /** Answers to lose from now on: the request is executed, then the connection is cut. */
  lose: number
}

export async function lossyProxy(target: string): Promise<LossyProxy> {
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    requests.push(`${method} ${url}`)
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
    const { host: _, connection: __, ...others } = headers
    const init = { method, headers: others as Record<string, string>, ...(body.length > 0 && { body }) }
    const answer = await fetch(`${target}${url}`, init)
    const content = await answer.bytes()
    if (proxy.lose > 0) {
      proxy.lose--
      request.socket.destroy()
      return
    }
    const sent = [...answer.headers].filter(([name]) => !['content-length', 'transfer-encoding'].includes(name))
    response.writeHead(answer.status, Object.fromEntries(sent)).end(content)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: LossyProxy = {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, lose: 0 },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}
