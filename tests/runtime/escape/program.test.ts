/**
 * Goal: what tries to escape is honest, for a program that finds everything blocked proves nothing. Method: it runs where
 * it can do everything (root, no sandbox), where it can do much (a user, no sandbox) and in somebody else's sandbox, with
 * baits around it; what must be open there is, and who keeps the baits has noticed it.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { type Attempt, parseAttempts, type Verdict } from '../../../runtime/escape/attempts.ts'
import { escapePlace, listed } from '../../support/escape.ts'
import { withoutCalls } from '../../support/hosts.ts'
import { mustSandbox } from '../../support/must-sandbox.ts'

const isRoot = process.getuid?.() === 0

/** A uid that has no files. */
const UID = 54_321

const named = (attempts: readonly Attempt[], verdict: Verdict) =>
  attempts.filter((attempt) => attempt.verdict === verdict).map(({ name }) => name)

/** What the kernel refuses nobody, or only where it was told to. */
const OPEN_TO_ALL = [
  ...['read_hidden', 'read_hidden_by_root', 'read_hidden_by_symlink', 'read_beside', 'host_processes'],
  'secret_in_files',
]
const SOCKETS = [
  ...['connect_abstract', 'connect_loopback', 'connect_hidden', 'ask_service', 'shared_memory', 'message_queue'],
  ...['secret_in_shared_memory', 'secret_from_sockets'],
]

/** What needs rights in its network, and what anybody may do in the network of the host. */
const NETWORK_OF_ROOT = ['make_interface', 'make_address', 'make_route', 'set_interface', 'mark_packets', 'raw_sockets']
const NETWORK_OF_HOST = ['loopback_spellings', 'interfaces', 'host_sockets']

/** All attempts by a proxy, and those that ask it for names. */
const THROUGH_PROXY = [
  ...listed().flatMap(({ name }) => (name.startsWith('proxy_') ? [name] : [])),
  ...['metadata_named', 'metadata_trailing_dot'],
]

/** A proxy that lets everything through. It makes no connection. */
function openProxy() {
  const yes = { http: 'HTTP/1.1 200 OK\r\n\r\n', socks: '\x05\0', connected: `\x05\0\0\x01${'\0'.repeat(6)}` }
  const server = Bun.listen<{ isGreeted: boolean }>({
    ...{ hostname: '127.0.0.1', port: 0, data: { isGreeted: false } },
    socket: {
      open: (socket) => {
        socket.data = { isGreeted: false }
      },
      data: (socket, bytes) => {
        const isSocks = bytes[0] === 5 && !socket.data.isGreeted
        if (socket.data.isGreeted) socket.end(yes.connected)
        else if (isSocks) socket.write(yes.socks)
        else socket.end(bytes[0] === 4 ? `\0Z${'\0'.repeat(6)}` : yes.http)
        socket.data.isGreeted ||= isSocks
      },
    },
  })
  return { bait: ['--bait', `proxy=${server.port}`], [Symbol.dispose]: () => server.stop(true) }
}

test('a line that is none of an attempt is not passed over', () => {
  expect(parseAttempts('')).toEqual([])
  expect(parseAttempts('a\tblocked\twhy\n')).toEqual([{ name: 'a', verdict: 'blocked', detail: 'why' }])
  for (const line of ['a', 'a\tblocked', 'a\tfine\twhy', '\topen\twhy', 'a\topen\twhy\tmore', 'Segmentation fault'])
    expect(() => parseAttempts(`${line}\n`)).toThrow('not an attempt')
})

test('each attempt is made once, under a name of its own, whatever comes of it', async () => {
  await using place = await escapePlace([])
  const names = listed().map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  const together = listed().flatMap(({ name, isAlone }) => (isAlone ? [] : [name]))
  expect((await place.attempts()).map(({ name }) => name)).toEqual(together)
  expect(await place.attempts([], ['--only', 'memory'])).toMatchObject([{ name: 'memory', verdict: 'not_applicable' }])
  await expect(place.attempts([], ['--only', 'nothing'])).rejects.toThrow('2 taskmill-escape: unknown attempt')
})

test('attempts that get no process are told of as such, and use up no descriptors', async () => {
  await using place = await escapePlace([])
  const FORKS = process.arch === 'x64' ? [56, 57, 58] : [220]
  const attempts = await place.attempts([...withoutCalls(FORKS), 'prlimit', '--nofile=16'])
  expect(attempts.length).toBeGreaterThan(100)
  const reasons = attempts.map(({ detail }) => detail.slice(detail.indexOf(': ') + 2))
  expect([...new Set(reasons)]).toEqual(['not tried: Function not implemented'])
})

test.skipIf(!isRoot)('as root and outside of a sandbox nearly everything is open (needs root)', async () => {
  await using place = await escapePlace(['/run', '/var/tmp'])
  using proxy = openProxy()
  const before = readdirSync(place.workspace)
  const attempts = await place.attempts([], [...proxy.bait])
  const open = named(attempts, 'open')
  expect(open.length).toBeGreaterThan(attempts.length * 0.6)
  expect(open).toEqual(expect.arrayContaining([...OPEN_TO_ALL, ...SOCKETS]))
  expect(open).toEqual(expect.arrayContaining([...NETWORK_OF_ROOT, ...NETWORK_OF_HOST, ...THROUGH_PROXY]))
  const ofRoot = ['read_shadow', 'kill_host', 'trace_host', 'take_descriptor', 'host_process_files', 'write_system']
  expect(open).toContain('secret_in_processes')
  expect(open).toEqual(
    expect.arrayContaining([...ofRoot, 'become_other', 'capabilities', 'no_new_privs', 'disk_quota']),
  )
  // The init of this machine is left alone.
  expect(named(attempts, 'not_applicable')).toEqual(expect.arrayContaining(['kill_init', 'trace_init', 'init_secrets']))
  expect(readdirSync(place.workspace)).toEqual(before)
  const { taken } = await place.baits.collect()
  expect(taken.map((bait) => bait.split('=')[0])).toEqual(['service', 'abstract', 'tcp', 'unix'])
})

test.skipIf(!isRoot)('as a user it finds open what a user may (needs root to become one)', async () => {
  await using place = await escapePlace(['/var/tmp'])
  const asUser = ['setpriv', `--reuid=${UID}`, `--regid=${UID}`, '--clear-groups']
  const attempts = await place.attempts(asUser)
  expect(named(attempts, 'open')).toEqual(expect.arrayContaining([...OPEN_TO_ALL, ...SOCKETS, 'no_new_privs']))
  const blocked = ['read_shadow', 'kill_host', 'trace_host', 'become_root', 'write_system', 'mknod_block', 'reboot']
  expect(named(attempts, 'blocked')).toContain('secret_in_processes')
  expect(named(attempts, 'blocked')).toEqual(expect.arrayContaining([...blocked, ...NETWORK_OF_ROOT, 'mount_tmpfs']))
  expect(named(attempts, 'open')).toEqual(expect.arrayContaining(NETWORK_OF_HOST))
  expect(named(attempts, 'not_applicable')).toEqual(
    expect.arrayContaining(listed().flatMap(({ name }) => (name.startsWith('proxy_') ? [name] : []))),
  )
})

/** What the secret becomes on its way through a proxy. */
const IN_ANSWERS: readonly [string, (secret: string) => string, Verdict, string][] = [
  ['masks it', (secret) => '*'.repeat(secret.length), 'blocked', 'all of it is masked in the answers'],
  ['passes it on', (secret) => secret, 'open', 'by GET /body'],
  ['passes it on as a parameter', (secret) => `?a=${secret}&b`, 'open', 'by GET /body'],
  ['passes it on in base64', btoa, 'open', 'by GET /body'],
  ['passes it on in base64, after a byte', (secret) => btoa(`:${secret}`), 'open', 'by GET /body'],
  ['passes it on in base64, after two bytes', (secret) => btoa(`me${secret}`), 'open', 'by GET /body'],
  ['keeps it', () => '', 'open', 'not tried: the server did not answer with it'],
]

test.each(IN_ANSWERS)('a proxy that adds a secret, and %s', async (_, made, verdict, detail) => {
  await using place = await escapePlace([])
  const answer = `HTTP/1.1 200 OK\r\n\r\nx-key: ${made(place.baits.secret)}\n`
  using proxy = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: { data: (socket) => void socket.end(answer) },
  })
  const baits = [`proxy=${proxy.port}`, 'echo=1', 'placeholder=x'].flatMap((bait) => ['--bait', bait])
  const attempts = await place.attempts([], ['--only', 'secret_from_proxy', ...baits])
  expect(attempts).toMatchObject([{ verdict, detail: expect.stringContaining(detail) }])
})

/** How a process gets the secret, of which its arguments have only the beginning. */
const IN_PROCESSES: readonly [string, (secret: string, path: string) => string][] = [
  ['environ', (_, path) => `SECRET=$(cat ${path}) exec "$@"`],
  ['cmdline', (secret) => `"$@"; exit # ${secret}`],
  ['fd', (_, path) => `cat ${path} > gone; exec 7< gone; rm gone; "$@"`],
  ['mem', (_, path) => `read secret < ${path}; "$@"; exit`],
]

test.skipIf(!isRoot).each(IN_PROCESSES)(
  'a secret of another process of its user is found in %s (needs root to become one)',
  async (where, script) => {
    await using place = await escapePlace([])
    const path = place.baits.list.find((bait) => bait.startsWith('secret='))!.slice('secret='.length)
    const asUser = ['setpriv', `--reuid=${UID}`, `--regid=${UID}`, '--clear-groups']
    const around = [...asUser, 'sh', '-c', script(place.baits.secret, path), 'sh']
    const [attempt] = await place.attempts(around, ['--only', 'secret_in_processes'])
    expect([attempt!.verdict, attempt!.detail.split('/').at(-1)!]).toEqual(['open', where])
  },
)

test('a lease on a log is open to its owner, and to nobody else', async () => {
  await using place = await escapePlace([])
  const lease = async (...around: string[]) => {
    const logged = ['sh', '-c', '"$@" > log; cat log', 'sh', ...around]
    return (await place.attempts(logged, ['--only', 'lease_output'])).map(({ verdict }) => verdict)
  }
  expect(await lease()).toEqual(['open'])
  if (isRoot) expect(await lease('setpriv', `--reuid=${UID}`, '--clear-groups')).toEqual(['blocked'])
})

test('limits are gone past where nobody keeps them, by a little', async () => {
  await using place = await escapePlace([])
  const limits = ['pids-max=20', 'memory-bytes=20000000', 'tmp-bytes=20000000', 'shm-bytes=20000000'].flatMap(
    (bait) => ['--bait', bait],
  )
  const limited = 'fork_storm fill_tmp fill_shm memory memory_by_descriptor memory_by_files memory_by_sockets'
  for (const name of limited.split(' '))
    expect(await place.attempts([], ['--only', name, ...limits])).toMatchObject([{ name, verdict: 'open' }])
  const storm = await place.attempts(['prlimit', '--nproc=0'], ['--only', 'fork_storm', ...limits])
  if (!isRoot) expect(storm).toMatchObject([{ verdict: 'open', detail: expect.stringContaining('not tried') }])
})

const missingBwrap = mustSandbox(Bun.which('bwrap') === null ? 'bwrap is not installed (bubblewrap)' : undefined)

describe.skipIf(missingBwrap !== undefined)(
  `in a plain bwrap${missingBwrap ? ` (skipped: ${missingBwrap})` : ''}`,
  () => {
    test('it finds what that leaves open', async () => {
      await using place = await escapePlace(['/var/tmp'])
      const hide = ['--tmpfs', '/tmp', '--tmpfs', '/var/tmp', '--bind', place.workspace, place.workspace]
      const view = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', ...hide, '--chdir', place.workspace]
      const user = isRoot ? ['--uid', `${UID}`, '--gid', `${UID}`] : []
      const attempts = await place.attempts(['bwrap', '--unshare-all', ...user, '--cap-drop', 'ALL', ...view])
      const open = 'init_directories init_command change_init vsock io_uring keyring_add core_dump write_mounts'
      expect(named(attempts, 'open')).toEqual(expect.arrayContaining(open.split(' ')))
      const blocked = ['kill_host', 'trace_host', 'host_processes', 'mount_tmpfs', 'write_system', 'become_root']
      expect(named(attempts, 'blocked')).toEqual(expect.arrayContaining(['secret_in_processes', 'secret_in_files']))
      expect(named(attempts, 'blocked')).toEqual(expect.arrayContaining([...blocked, ...SOCKETS, 'read_hidden']))
      expect(named(attempts, 'blocked')).toEqual(expect.arrayContaining([...NETWORK_OF_HOST, 'metadata_dotted']))
      expect((await place.baits.collect()).taken).toEqual([])
    })
  },
)

test('nothing of the baits stays', async () => {
  let secrets: string[] = []
  {
    await using place = await escapePlace(['/var/tmp'])
    secrets = place.baits.list.flatMap((bait) => (bait.startsWith('secret=') ? [bait.slice('secret='.length)] : []))
    expect(secrets.filter((path) => existsSync(path))).toEqual(secrets)
  }
  expect(secrets.filter((path) => existsSync(path))).toEqual([])
})
