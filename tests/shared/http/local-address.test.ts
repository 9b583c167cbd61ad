/**
 * Which addresses are those of this machine. Method: a program with a network of its own, which has addresses that no list
 * of interfaces tells.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { parseIp } from '../../../shared/egress/ip-address.ts'
import { isLocalAddress } from '../../../shared/http/local-address.ts'

const IN_NETWORK = ['unshare', '--net', 'sh', '-c']
const isPossible = Bun.spawnSync([...IN_NETWORK, 'ip link set lo up']).exitCode === 0

/** An interface without carrier, one with a neighbour, local routes in the table that is always looked at and in another. */
const PREPARE = `ip link set lo up &&
  ip link add idle type veth peer name unplugged && ip link set idle up && ip addr add 172.18.0.1/16 dev idle &&
  ip addr add 172.18.0.2/16 dev idle && ip addr add fd00:18::1/64 dev idle nodad &&
  ip link add near type veth peer name far && ip link set near up && ip link set far up &&
  ip addr add 192.0.2.1/24 dev near && ip addr add 2001:db8:2::1/64 dev near nodad &&
  ip route add local 10.9.0.0/16 dev lo && ip -6 route add local 2001:db8:9::/64 dev lo &&
  ip route add local 0.0.0.0/0 dev lo table 100`

const HERE = ['172.18.0.1', '172.18.0.2', 'fd00:18::1', '192.0.2.1', '2001:db8:2::1', '10.9.1.2', '2001:db8:9::5']
const ALWAYS_HERE = ['127.0.0.1', '127.9.8.7', '::1', '0.0.0.0', '::', '::ffff:172.18.0.1', '::ffff:127.0.0.1']
const ELSEWHERE = [
  '172.18.0.3',
  'fd00:18::3',
  '192.0.2.3',
  '2001:db8:2::3',
  '10.10.0.1',
  '203.0.113.1',
  '2001:db8:8::1',
]

/** What the program prints after `prepare`. */
function printedIn(prepare: string, program: string): unknown {
  const root = join(import.meta.dir, '../../..')
  const imports = `import { isLocalAddress } from ${JSON.stringify(join(root, 'shared/http/local-address.ts'))}
    import { parseIp } from ${JSON.stringify(join(root, 'shared/egress/ip-address.ts'))}\n`
  const { stdout, stderr } = Bun.spawnSync([
    ...IN_NETWORK,
    `${prepare} && exec "$0" -e "$1"`,
    process.execPath,
    imports + program,
  ])
  expect(stderr.toString()).toBe('')
  return JSON.parse(stdout.toString())
}

test.skipIf(!isPossible)('those that the kernel takes for its own, whatever its interfaces do', () => {
  const all = [...HERE, ...ALWAYS_HERE, ...ELSEWHERE]
  const program = `console.log(JSON.stringify(${JSON.stringify(all)}.filter((text) => isLocalAddress(parseIp(text)))))`
  expect(printedIn(PREPARE, program)).toEqual([...HERE, ...ALWAYS_HERE])
})

test.skipIf(!isPossible)('one that is added while the program runs, and not after it was removed', () => {
  const program = `const run = (command) => Bun.spawnSync(['ip', 'addr', command, '172.19.0.1/32', 'dev', 'lo'])
    const isHere = () => isLocalAddress(parseIp('172.19.0.1'))
    const seen = [isHere()]
    for (const command of ['add', 'del']) { run(command); seen.push(isHere()) }
    console.log(JSON.stringify(seen))`
  expect(printedIn('ip link set lo up', program)).toEqual([false, true, false])
})

test('this machine has its loopback addresses, and not those of documentation', () => {
  expect([isLocalAddress(parseIp('127.0.0.1')!), isLocalAddress(parseIp('203.0.113.7')!)]).toEqual([true, false])
})
