import { expect, test } from 'bun:test'
import { freePort } from './free-port.ts'

test('a free port refuses connections, and no listener on port 0 gets it', async () => {
  const port = await freePort()
  const listeners = Array.from({ length: 200 }, () =>
    Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }),
  )
  const lowest = Math.min(...listeners.map((listener) => listener.port))
  for (const listener of listeners) listener.stop(true)
  expect(port).toBeLessThan(lowest)
  await expect(Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })).rejects.toThrow()
})
