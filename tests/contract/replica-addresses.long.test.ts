/**
 * The addresses under which replicas of control reach each other.
 * Source: docs/cluster.md.
 */
import { expect, test } from 'bun:test'
import type { Control } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { describeReplicas, healthOf, LONG_LEASE } from '../support/replicas.ts'
import { until } from '../support/until.ts'

const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

const UNREACHABLE = 'other replicas cannot reach this one: set --advertise to an address that leads to it'
const REACHABLE = 'other replicas can reach this one now'

const faultOf = async (control: Control) =>
  ((await healthOf(control)).replica as { readonly address_fault?: string }).address_fault

const linesOf = ({ log }: Control, msg: string) => log.filter((line) => line.msg === msg)

describeReplicas('addresses of replicas', (cluster) => {
  test.each(['HTTP_PROXY', 'http_proxy', 'ALL_PROXY'])('lie behind no proxy, whatever %s says', async (name) => {
    using each = await cluster()
    let proxied = 0
    using proxy = Bun.serve({
      ...{ port: 0, hostname: '127.0.0.1' },
      fetch() {
        proxied++
        return new Response('a proxy', { status: 502 })
      },
    })
    // An address that a service keeps away from proxies by no other rule: that is for 127.0.0.1 and localhost.
    const start = () =>
      each.replica(['--addr', '127.0.0.2:0', ...LONG_LEASE], { [name]: `http://127.0.0.1:${proxy.port}` })
    const [first, second] = await Promise.all([start(), start()])
    await using _ = first
    await using __ = second
    await first.submit([noop('a'), noop('..')])
    await first.ended('a')
    expect((await second.fetch('/tasks/a')).status).toBe(200)
    expect((await second.post({ tasks: [noop('a')] })).status).toBe(202) // the first one gives the id up
    expect((await first.fetch('/graphs')).headers.get('x-missing-replicas')).toBeNull()
    expect([await faultOf(first), await faultOf(second), proxied]).toEqual([undefined, undefined, 0])
  })

  test('are checked at the start: a wrong --advertise is told, and stops nothing', async () => {
    using each = await cluster()
    using stranger = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('a page') })
    await using right = await each.replica()
    const of = (url: string) => each.replica(['--advertise', url])
    const cases: readonly (readonly [url: string, fault: string])[] = [
      [`http://127.0.0.1:${await freePort()}`, 'connection refused'],
      [stranger.url.origin, 'no replica answers 200 at this address'],
      [right.url, `replica ${(await healthOf(right)).replica.id} answers at this address`],
    ]
    for (const [i, [url, fault]] of cases.entries()) {
      await using wrong = await of(url)
      const found = await until(() => faultOf(wrong))
      expect(found).toContain(fault)
      const told = await until(
        () => linesOf(wrong, UNREACHABLE),
        ({ length }) => length > 0,
      )
      expect(told).toMatchObject([{ level: 'warn', url, cause: found }])
      expect((await wrong.fetch('/readyz')).status).toBe(200)
      await wrong.run(noop(`b${i}`))
    }
    expect(await faultOf(right)).toBeUndefined()
    expect(linesOf(right, UNREACHABLE)).toEqual([])
  })

  test('may lead to a replica only some time after its start', async () => {
    using each = await cluster()
    const port = await freePort()
    await using control = await each.replica(['--advertise', `http://127.0.0.1:${port}`])
    await until(() => faultOf(control))
    using _ = Bun.serve({
      ...{ port, hostname: '127.0.0.1' },
      fetch: (request) => fetch(control.url + new URL(request.url).pathname, { headers: request.headers }),
    })
    await until(
      () => faultOf(control),
      (text) => text === undefined,
      { patienceMs: 60_000 },
    )
    await until(
      () => linesOf(control, REACHABLE).length,
      (count) => count > 0,
    )
    expect([linesOf(control, UNREACHABLE).length, linesOf(control, REACHABLE).length]).toEqual([1, 1])
  })
})
