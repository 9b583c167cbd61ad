/** Which connections reach our own services. */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { ServiceAddresses } from '../../../runtime/egress/service-addresses.ts'
import { serviceAddressOf } from '../../../runtime/plan/authority.ts'
import { type IpAddress, ipText, parseIp } from '../../../shared/egress/ip-address.ts'

const HERE = ['127.0.0.1', '::1', '192.0.2.7', '2001:db8::7']
const isHere = (address: IpAddress) => ['0.0.0.0', '::', ...HERE].includes(ipText(address))
const isOfService = (services: ServiceAddresses, address: string, port: number, from?: string) =>
  services.isOfService(parseIp(address)!, port, from)

test('a port of this machine is closed on all of its addresses', () => {
  const services = new ServiceAddresses(isHere)
  services.addPort(80)
  services.addPort(0) // none: the service picks one
  for (const text of [':81', '127.0.0.1:82', 'localhost:83', '[::1]:84', '192.0.2.7:85', '0.0.0.0:86', '[::]:87']) {
    services.add(serviceAddressOf(text)!)
  }
  for (const port of [80, 81, 82, 83, 84, 85, 86, 87]) {
    for (const address of HERE)
      expect([address, port, isOfService(services, address, port)]).toEqual([address, port, true])
    expect(isOfService(services, '192.0.2.8', port)).toBe(false)
  }
  for (const address of HERE) expect(isOfService(services, address, 88)).toBe(false)
})

test.each([
  '0.0.0.0',
  '::',
  '::ffff:0.0.0.0',
  '::ffff:192.0.2.7',
  '64:ff9b::c000:207',
  '::192.0.2.7',
  '2002:c000:207::',
])('%s reaches this machine, too', (address) => {
  const services = new ServiceAddresses((one) => HERE.includes(ipText(one)))
  services.addPort(80)
  expect([isOfService(services, address, 80), isOfService(services, address, 81)]).toEqual([true, false])
})

test('an address elsewhere is closed by itself, and its port of this machine once the address is one of it', () => {
  let isMoved = false
  const services = new ServiceAddresses((address) => isHere(address) || (isMoved && ipText(address) === '192.0.2.8'))
  for (let i = 0; i < 3; i++) services.add(serviceAddressOf('192.0.2.8:80')!)
  const closed = () => ['192.0.2.8', '192.0.2.9', '192.0.2.7'].map((address) => isOfService(services, address, 80))
  expect(closed()).toEqual([true, false, false])
  isMoved = true
  expect(closed()).toEqual([true, false, true])
  expect(isOfService(services, '192.0.2.8', 81)).toBe(false)
})

describe('a connection that was made', () => {
  test('reaches this machine if both of its ends have one address', () => {
    const services = new ServiceAddresses(() => false)
    services.addPort(80)
    expect(isOfService(services, '192.0.2.9', 80)).toBe(false)
    expect(isOfService(services, '192.0.2.9', 80, '192.0.2.7')).toBe(false)
    expect(isOfService(services, '192.0.2.9', 80, '192.0.2.9')).toBe(true)
    expect(isOfService(services, '192.0.2.9', 80, '::ffff:192.0.2.9')).toBe(true)
    expect(isOfService(services, '192.0.2.9', 81, '192.0.2.9')).toBe(false)
  })
})

test('there is a bound for those that callers add', () => {
  const services = new ServiceAddresses(isHere)
  services.addPort(1)
  for (let port = 2; port < 1_000; port++) {
    services.addPort(port)
    services.add(serviceAddressOf(`192.0.2.8:${port}`)!)
  }
  const closed = (address: string) =>
    Array.from({ length: 999 }, (_, i) => i + 1).filter((port) => isOfService(services, address, port))
  expect(closed('127.0.0.1')).toHaveLength(64)
  expect(closed('192.0.2.8')).toHaveLength(256)
})

test.each(['', '80', 'x:80', '10.0.0.1', '10.0.0.1:0', '10.0.0.1:65536', '::1:80', '10.0.0.1:80/'])(
  '%j is no address',
  (text) => {
    expect(serviceAddressOf(text)).toBeUndefined()
  },
)

const IN_NETWORK = ['unshare', '--net', 'sh', '-c']
const isPossible = Bun.spawnSync([...IN_NETWORK, 'ip link set lo up']).exitCode === 0

test.skipIf(!isPossible)('a task reaches no service of ours by an address that no list of interfaces tells', () => {
  const prepare = `ip link set lo up && ip link add idle type veth peer name unplugged && ip link set idle up &&
    ip addr add 172.18.0.1/16 dev idle && ip addr add fd00:18::1/64 dev idle nodad && ip route add local 10.9.0.0/16 dev lo`
  const program = `import { TestProxy } from ${JSON.stringify(join(import.meta.dir, '../../support/egress.ts'))}
    const listen = () => Bun.serve({ hostname: '::', port: 0, fetch: () => new Response('') })
    const [services, other] = [listen(), listen()]
    const hosts = ['172.18.0.1', '[fd00:18::1]', '[::ffff:172.18.0.1]', '10.9.1.2', '127.0.0.9', '0.0.0.0', 'a.example']
    const proxy = new TestProxy({
      rules: { allow: ['172.16.0.0/12', '10.0.0.0/8', '[fd00::]/16', '127.0.0.0/8', 'a.example', '0.0.0.0'] },
      names: { 'a.example': ['172.18.0.1'] },
      ownPorts: [services.port],
    })
    const answers = {}
    for (const { port } of [services, other])
      for (const host of hosts) {
        const client = proxy.client()
        client.write('CONNECT ' + host + ':' + port + ' HTTP/1.1\\r\\n\\r\\n')
        ;(answers[host] ??= []).push(Number((await client.upTo('\\r\\n')).split(' ')[1]))
        client.socket.destroy()
      }
    console.log(JSON.stringify(answers))
    await proxy[Symbol.asyncDispose]()
    process.exit()`
  const { stdout, stderr } = Bun.spawnSync([
    ...IN_NETWORK,
    `${prepare} && exec "$0" -e "$1"`,
    process.execPath,
    program,
  ])
  expect(stderr.toString()).toBe('')
  const hosts = ['172.18.0.1', '[fd00:18::1]', '[::ffff:172.18.0.1]', '10.9.1.2', '127.0.0.9', '0.0.0.0', 'a.example']
  expect(JSON.parse(stdout.toString())).toEqual(Object.fromEntries(hosts.map((host) => [host, [403, 200]])))
})
