/**
 * Looking names up as the system does. Method: a program with a network and a view of files of its own, so that it can be
 * its own name server.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hostsAddressesIn, nameServersIn, systemAddresses } from '../../../shared/http/system-addresses.ts'
import { tempDir } from '../../support/temp.ts'

const IN_NAMESPACES = ['unshare', '--mount', '--net', 'sh', '-c']
const PREPARE =
  'ip link set lo up && mount --bind resolv.conf /etc/resolv.conf && mount --bind hosts /etc/hosts && exec "$0" program.ts'
const isPossible = Bun.spawnSync([...IN_NAMESPACES, 'ip link set lo up']).exitCode === 0

const HOSTS = '127.0.0.1 localhost\n192.0.2.9 hosted.example hosted\n2001:db8::9 hosted.example\n'
const SETTINGS = 'nameserver 127.0.0.1\nsearch corp.example\noptions timeout:5 attempts:2\n'

/** What the body of a program prints. It may use `found`, `foundAbsolute` and `startDnsServer`. */
function printed(body: string, hosts = HOSTS): unknown {
  using dir = tempDir()
  const imported = (name: string, path: string) =>
    `import { ${name} } from ${JSON.stringify(join(import.meta.dir, '../../..', path))}\n`
  const program = `${imported('systemAddresses, absoluteAddresses', 'shared/http/system-addresses.ts')}${imported('startDnsServer', 'tests/support/dns-server.ts')}
    const found = (name) => systemAddresses(name).catch(({ code }) => code)
    const foundAbsolute = (name) => absoluteAddresses(name).catch(({ code }) => code)
    ${body}
    process.exit()`
  for (const [name, text] of Object.entries({ 'resolv.conf': SETTINGS, hosts, 'program.ts': program }))
    writeFileSync(join(dir.path, name), text)
  const { stdout, stderr } = Bun.spawnSync([...IN_NAMESPACES, PREPARE, process.execPath], { cwd: dir.path })
  expect(stderr.toString()).toBe('')
  return JSON.parse(stdout.toString())
}

test('a name of this machine has its address', async () => {
  expect(await systemAddresses('localhost')).toContain('127.0.0.1')
})

test('an address is its own', async () => {
  expect(await systemAddresses('127.0.0.1')).toEqual(['127.0.0.1'])
  expect(await systemAddresses('::1')).toEqual(['::1'])
})

test.skipIf(!isPossible)('the hosts file, name servers and the search list are asked, in this order', () => {
  const body = `const server = await startDnsServer({ 'a.example': { a: [['192.0.2.1', '192.0.2.2']] }, 'hosted.example': { a: [['192.0.2.3']] },
      'short.corp.example': { a: [['192.0.2.4']] }, 'broken.example': { rcode: 2 } }, 53)
    const names = ['a.example', 'a.example.', 'hosted.example', 'hosted', 'short', 'localhost', 'none.example', 'broken.example']
    const all = {}
    for (const name of names) all[name] = await found(name)
    console.log(JSON.stringify({ ...all, asked: server.asked.includes('hosted.example') }))`
  expect(printed(body)).toEqual({
    'a.example': ['192.0.2.1', '192.0.2.2'],
    'a.example.': ['192.0.2.1', '192.0.2.2'],
    'hosted.example': expect.arrayContaining(['192.0.2.9', '2001:db8::9']),
    hosted: expect.arrayContaining(['192.0.2.9']),
    short: ['192.0.2.4'],
    localhost: expect.arrayContaining(['127.0.0.1']),
    'none.example': 'ENOTFOUND',
    'broken.example': expect.stringMatching(/^E(SERVFAIL|NOTFOUND)$/),
    asked: false,
  })
})

test.skipIf(!isPossible)(
  'an absolute name is looked up in the hosts file and at name servers, and never with the search list',
  () => {
    const body = `const server = await startDnsServer({ 'a.example': { a: [['192.0.2.1']] }, 'hosted.example': { a: [['192.0.2.3']] },
      'short.corp.example': { a: [['192.0.2.4']] }, 'b.example.corp.example': { a: [['192.0.2.5']] } }, 53)
    const all = {}
    for (const name of ['a.example.', 'HOSTED.example.', 'hosted.', 'short.', 'b.example.', 'localhost.'])
      all[name] = await foundAbsolute(name)
    console.log(JSON.stringify({ ...all, asked: server.asked.filter((name) => name.includes('corp')) }))`
    expect(printed(body)).toEqual({
      'a.example.': ['192.0.2.1'],
      'HOSTED.example.': ['192.0.2.9', '2001:db8::9'],
      'hosted.': ['192.0.2.9'],
      'short.': 'ENOTFOUND',
      'b.example.': 'ENOTFOUND',
      'localhost.': ['127.0.0.1'],
      asked: [],
    })
  },
)

test.skipIf(!isPossible)('localhost is this machine without a hosts file, too', () => {
  const body = `await startDnsServer({}, 53); 
    console.log(JSON.stringify([await found('localhost'), await foundAbsolute('localhost.')]))`
  for (const found of printed(body, '') as string[][]) expect(found).toContain('127.0.0.1')
})

test.skipIf(!isPossible)('name servers that are written down later are asked', () => {
  const body = `import { writeFileSync } from 'node:fs'
    await startDnsServer({ 'first.example': { a: [['192.0.2.1']] } }, 53)
    const first = await found('first.example')
    writeFileSync('/etc/resolv.conf', 'nameserver 127.0.0.9\\n')
    console.log(JSON.stringify([first, await found('second.example')]))`
  expect(printed(body)).toEqual([['192.0.2.1'], 'ECONNREFUSED'])
})

test.skipIf(!isPossible)('lookups without an answer do not keep files from being read', () => {
  const body = `import { readFile } from 'node:fs/promises'
      const silent = Object.fromEntries(Array.from({ length: 64 }, (_, i) => ['n' + i + '.example', { isSilent: true }]))
      const server = await startDnsServer(silent, 53)
      const names = Object.keys(silent).map(found)
      while (server.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      console.log(JSON.stringify(await Promise.race([readFile(import.meta.path).then(() => 'file'), ...names])))`
  expect(printed(body)).toBe('file')
})

test.each([
  ['', []],
  [
    '192.0.2.1 a\n192.0.2.2\tb A c\n#192.0.2.3 a\n192.0.2.4 b # a\n192.0.2.5 aa a.b\n \n::1 a',
    ['192.0.2.1', '192.0.2.2', '::1'],
  ],
])('the hosts file %j gives a name %j', (text, addresses) => {
  expect(hostsAddressesIn(text, 'a')).toEqual(addresses)
})

test.each([
  ['', []],
  ['nameserver 192.0.2.1\nnameserver 2001:db8::1 \n', ['192.0.2.1', '2001:db8::1']],
  ['# nameserver 192.0.2.1\n\tnameserver\t192.0.2.2\nsearch nameserver\nnameserver fe80::1%eth0\n', ['192.0.2.2']],
])('%j names the servers %j', (text, servers) => {
  expect(nameServersIn(text)).toEqual(servers)
})
