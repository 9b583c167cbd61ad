/** Goal: a mill has its ports to itself. Method: real mills, one of which gets a port twice. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { freePort } from '../support/free-port.ts'
import { startMill } from '../support/mill.ts'

const portOf = (url: string) => Number(new URL(url).port)

test('services that cannot have their ports get others', async () => {
  const taken = await freePort()
  const chosen = [taken, taken]
  await using mill = await startMill({ runtime: true }, async () => chosen.pop() ?? freePort())
  expect(portOf(mill.runtimeUrl!)).not.toBe(portOf(mill.url))
  expect(
    (await mill.client.run({ tasks: [{ id: 'a', type: 'runtime.script', params: { script: 'true' } }] })).state,
  ).toBe('success')
})

test.skipIf(process.platform !== 'linux')('no connection can take the port of control during a restart', async () => {
  await using mill = await startMill()
  const [first] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/)
  expect(portOf(mill.url)).toBeLessThan(Number(first))
  const { url } = mill
  await mill.restart()
  expect([mill.url, (await mill.client.health()).status]).toEqual([url, 'ok'])
})
