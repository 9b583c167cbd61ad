/** Goal: a mill has its ports to itself. Method: real mills, the first of which is made to choose one port twice. */
import { expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { startMill } from '../support/mill.ts'

const portOf = (url: string) => Number(new URL(url).port)

test('services that cannot have their ports get others', async () => {
  const { random } = Math
  const taken = random()
  const chosen: number[] = []
  using choice = spyOn(Math, 'random').mockImplementation(() => {
    chosen.push(chosen.length < 2 ? taken : random())
    return chosen.at(-1)!
  })
  await using mill = await startMill({ runtime: true })
  choice.mockRestore()
  expect(chosen.length).toBeGreaterThan(2)
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
