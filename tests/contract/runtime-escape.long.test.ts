/**
 * `taskmill-runtime doctor --escape`: every attempt to get out of a sandbox is blocked. As root and as a user, on the
 * control groups of this machine and on those of version 2 in a throw-away kernel, with the host and with a tree of its
 * own as root. And it says so, and fails, where something is not blocked. Source: architecture of the sandbox.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  accessSync,
  chmodSync,
  chownSync,
  copyFileSync,
  constants as fsConstants,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { allCgroups } from '../../scripts/left-cgroups.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { listed } from '../support/escape.ts'
import { CALLS, recordedSharedMounts, withoutCalls } from '../support/hosts.ts'
import { mustSandbox } from '../support/must-sandbox.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { inVm, missingVm, VM_PATIENCE_MS } from '../support/vm.ts'

setDefaultTimeout(VM_PATIENCE_MS)

const isRoot = process.getuid?.() === 0
const UID = 54_321

/** What needs limits by control groups, and what only root can lay out: its programs. */
const LIMITED = ['fork_storm', 'memory', 'memory_by_descriptor', 'memory_by_files', 'memory_by_sockets']
const OF_ROOT = ['setuid_program']

const names = listed().map(({ name }) => name)

/** Each attempt that can be made has a line; those of `without` do not apply, and everything else is blocked. */
function expectAllBlocked(
  { stdout, exitCode }: { stdout: string; exitCode: number },
  without: readonly string[],
): void {
  const lines = stdout.trimEnd().split('\n')
  expect(lines.filter((line) => line.startsWith('NOT BLOCKED'))).toEqual([])
  const named = (word: string) => lines.flatMap((line) => (line.startsWith(word) ? [line.split(/ +/)[1]!] : []))
  expect(named('n/a ')).toEqual(names.filter((name) => without.includes(name)))
  expect(named('blocked ')).toEqual(names.filter((name) => !without.includes(name)))
  expect(lines.at(-1)).toBe(`${names.length - without.length} blocked, 0 NOT BLOCKED, ${without.length} do not apply`)
  const byChoice = lines.at(-2)!
  expect(byChoice).toStartWith(
    'by choice    a task with "network": "host" has these, which do not count: connect_abstract, ',
  )
  expect(byChoice.split(/[ ,]+/)).toEqual(
    expect.arrayContaining(['connect_loopback', 'loopback_spellings', 'host_sockets']),
  )
  expect(exitCode).toBe(0)
}

/** `taskmill-runtime doctor --escape` as a user without any rights, in a place of its own. */
async function asUser(...args: string[]) {
  using dir = tempDir()
  chmodSync(dir.path, 0o755)
  const [program, home] = [join(dir.path, 'taskmill-runtime'), join(dir.path, 'home')]
  copyFileSync(await builtProgram('taskmill-runtime'), program)
  mkdirSync(home)
  chownSync(home, UID, UID)
  const child = Bun.spawn([program, 'doctor', '--escape', ...args], {
    cwd: home,
    env: testEnvironment({ HOME: home, TMPDIR: home }),
    ...{ uid: UID, gid: UID },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stdout = await new Response(child.stdout).text()
  const result = { stdout, exitCode: await child.exited, left: readdirSync(home) }
  return result
}

/** `taskmill-runtime doctor --escape` as a user of a user namespace that `forbid`, a line for sh, has taken something from. */
async function inUserNamespace(forbid: string, tmp: string) {
  const alone = ['unshare', '--user', `--map-user=${UID}`, `--map-group=${UID}`, '--keep-caps']
  const drop = 'exec setpriv --ambient-caps -all --inh-caps -all -- "$0" doctor --escape'
  const child = Bun.spawn([...alone, 'sh', '-c', `${forbid}; ${drop}`, await builtProgram('taskmill-runtime')], {
    env: testEnvironment({ TMPDIR: tmp }),
    ...{ uid: UID, gid: UID },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return { stdout: await new Response(child.stdout).text(), exitCode: await child.exited }
}

/** A tree with nothing in it but a shell. */
function smallRoot(top: string): string {
  mkdirSync(join(top, 'bin'))
  copyFileSync(Bun.which('busybox')!, join(top, 'bin/busybox'))
  chmodSync(join(top, 'bin/busybox'), 0o755)
  symlinkSync('busybox', join(top, 'bin/sh'))
  chmodSync(top, 0o755)
  return top
}

function canRead(path: string): boolean {
  try {
    accessSync(path, fsConstants.R_OK)
    return true
  } catch {
    return false
  }
}

const missingBusybox = mustSandbox(Bun.which('busybox') === null ? 'busybox is not installed' : undefined)
const skipped = (reason: string | undefined) => (reason === undefined ? '' : ` (skipped: ${reason})`)

describe.skipIf(missingSandbox !== undefined)(`out of a sandbox there is no way${skipped(missingSandbox)}`, () => {
  const withoutGroups = missingCgroups === undefined ? [] : LIMITED

  test.skipIf(!isRoot)(`as root${isRoot ? '' : ' (skipped: the tests run as a user)'}`, async () => {
    using dir = tempDir()
    const run = await runRuntime(['doctor', '--escape'], { env: { TMPDIR: dir.path } })
    expectAllBlocked(run, withoutGroups)
    expect(run.stdout).toMatch(/^blocked +proxy_get .*: HTTP\/1\.1 403 Forbidden$/m) // the proxy was there, and said no
    expect(run.stdout).toMatch(/^blocked +secret_from_proxy .*: all of it is masked in the answers$/m)
    expect(run.stderr).toBe('')
    expect(readdirSync(dir.path)).toEqual([])
  })

  test.skipIf(!isRoot).each(Object.entries(CALLS))(
    'as root, where the host shares its mounts and its kernel lacks %s (only root can arrange that)',
    async (_, calls) => {
      using dir = tempDir()
      const through = [...recordedSharedMounts(dir.path), ...withoutCalls(calls)]
      expectAllBlocked(await runRuntime(['doctor', '--escape'], { through }), withoutGroups)
      const [before, after] = ['before', 'after'].map((name) => readFileSync(join(dir.path, name), 'utf8'))
      expect(after).toBe(before!)
    },
  )

  test.skipIf(!isRoot)('as a user (only root can become one)', async () => {
    const run = await asUser()
    expectAllBlocked(run, [...LIMITED, ...OF_ROOT])
    expect(run.left).toEqual([])
  })

  test.skipIf(missingBusybox !== undefined || !isRoot)(
    `with a root of its own, for root and for a user${skipped(missingBusybox)}`,
    async () => {
      using dir = tempDir()
      const rootfs = smallRoot(dir.path)
      expectAllBlocked(await runRuntime(['doctor', '--escape', '--rootfs', rootfs]), withoutGroups)
      expectAllBlocked(await asUser('--rootfs', rootfs), [...LIMITED, ...OF_ROOT])
    },
  )
})

describe.skipIf(missingSandbox !== undefined)(`a root that is the host itself${skipped(missingSandbox)}`, () => {
  test('shows nothing that is hidden', async () => {
    const { stdout, exitCode } = await runRuntime(['doctor', '--escape', '--rootfs', '/'])
    expect(stdout.split('\n').filter((line) => line.startsWith('NOT BLOCKED'))).toEqual([])
    expect(exitCode).toBe(0)
  })
})

describe.skipIf(missingVm !== undefined)(`nor with control groups of version 2${skipped(missingVm)}`, () => {
  const tryAll = async () => [await builtProgram('taskmill-runtime'), 'doctor', '--escape']

  test('as root', async () => {
    expectAllBlocked(await inVm(await tryAll()), [])
  })

  test('as a user to whom some were delegated', async () => {
    expectAllBlocked(await inVm(await tryAll(), { isUser: true }), OF_ROOT)
  })
})

describe.skipIf(missingSandbox !== undefined)(`doctor --escape${skipped(missingSandbox)}`, () => {
  test('says what is not blocked, and fails', async () => {
    using home = tempDir()
    chmodSync(home.path, 0o755)
    const exposed = ['--sandbox-expose', home.path]
    const { stdout, exitCode } = await runRuntime(['doctor', '--escape', ...exposed], { env: { HOME: home.path } })
    expect(stdout).toMatch(/^NOT BLOCKED {2}read_hidden {2,}it opens files in hidden directories: \/.*\/secret$/m)
    expect(stdout).toMatch(/^NOT BLOCKED {2}connect_hidden /m)
    expect(stdout).toMatch(/^NOT BLOCKED {2}secret_in_files {2,}it looks for it in new files of .*: \/.*\/secret/m)
    expect(stdout).toMatch(/^\d+ blocked, [1-9]\d* NOT BLOCKED, \d+ do not apply\n$/m)
    expect(exitCode).toBe(1)
  })

  test.skipIf(!isRoot)(
    'fails where there can be no sandbox, with the remedy (only root can become a user)',
    async () => {
      using dir = tempDir()
      chownSync(dir.path, UID, UID)
      const forbid = 'echo 0 > /proc/sys/user/max_user_namespaces'
      const { stdout, exitCode } = await inUserNamespace(forbid, dir.path)
      expect(stdout).toMatch(/^NOT BLOCKED {2}there is no sandbox to escape from: .*max_user_namespaces/)
      expect(exitCode).toBe(1)
    },
  )

  test.skipIf(!isRoot)(
    'finds open what the network of the host gives, our own API first, where there can be no other (only root can become a user)',
    async () => {
      using dir = tempDir()
      chownSync(dir.path, UID, UID)
      const forbid = 'echo 0 > /proc/sys/user/max_net_namespaces'
      const { stdout, exitCode } = await inUserNamespace(forbid, dir.path)
      const open = stdout.split('\n').flatMap((line) => (line.startsWith('NOT BLOCKED') ? [line.split(/ +/)[2]!] : []))
      expect(open.slice(0, 4)).toEqual(['connect_abstract', 'connect_loopback', 'ask_service', 'network_route'])
      const more = ['metadata_dotted', 'loopback_spellings', 'private_routes', 'interfaces', 'host_sockets']
      expect(open.slice(4)).toEqual(expect.arrayContaining(more))
      expect(open.filter((name) => /^(make|set|mark|take|raw|packet|rare|proxy)_/.test(name))).toEqual([])
      expect(stdout).toMatch(
        /^NOT BLOCKED {2}ask_service {2,}it asks taskmill's own API .*: it did, on the host \(service=\d+\)$/m,
      )
      expect(stdout).toMatch(/^not tried {4}"network": "host": no sandbox of this host has another network, /m)
      expect(exitCode).toBe(1)
    },
  )

  test.skipIf(!isRoot)(
    'does not try the network of the host where a task could read the token (only root can become a user)',
    async () => {
      using dir = tempDir()
      chownSync(dir.path, UID, UID)
      const forbid = 'echo 0 > /proc/sys/user/max_mnt_namespaces'
      const { stdout, exitCode } = await inUserNamespace(forbid, dir.path)
      expect(stdout).toMatch(
        /^not tried {4}"network": "host": strict tasks are refused it here: .* the token of the service$/m,
      )
      expect(stdout).toMatch(/^NOT BLOCKED {2}read_hidden /m)
      expect(exitCode).toBe(1)
    },
  )

  test('says that there is no sandbox where the service would have none', async () => {
    const run = await runRuntime(['doctor', '--escape', '--disable-linux-sandbox'])
    expect(run).toMatchObject({
      stdout:
        'NOT BLOCKED  there is no sandbox to escape from: --disable-linux-sandbox is set (Start the service without that flag.)\n',
      exitCode: 1,
    })
  })

  /** One that has laid its baits and is in a sandbox. */
  async function underWay(tmp: string) {
    const child = Bun.spawn([await builtProgram('taskmill-runtime'), 'doctor', '--escape'], {
      cwd: '/',
      env: testEnvironment({ TMPDIR: tmp }),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await until(() => readdirSync(tmp).some((name) => name.startsWith('taskmill-sandbox-')))
    return child
  }

  /** What a run has left anywhere. */
  function leftBy(pid: number, tmp: string): string[] {
    const directories = [tmp, '/run', '/home', '/root', '/tmp', '/var/tmp'].filter(canRead)
    const files = directories.flatMap((path) => readdirSync(path).filter((name) => name.includes(`-${pid}-`)))
    return [...files, ...allCgroups().filter((path) => path.includes(`/escape-${pid}`))]
  }

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('leaves nothing when it is interrupted by %s', async (signal) => {
    using tmp = tempDir()
    const child = await underWay(tmp.path)
    child.kill(signal)
    expect(await child.exited).toBe(128 + constants.signals[signal])
    expect(await new Response(child.stdout).text()).toBe('')
    expect(leftBy(child.pid, tmp.path)).toEqual([])
    expect(readdirSync(tmp.path)).toEqual([])
  })

  test('may have its temporary directory deeper than a socket can lie', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o755)
    const deep = join(dir.path, 'd'.repeat(120))
    mkdirSync(deep)
    const { stdout, stderr, exitCode } = await runRuntime(['doctor', '--escape'], { env: { TMPDIR: deep } })
    expect([stderr, exitCode, readdirSync(deep)]).toEqual(['', 0, []])
    expect(stdout).toContain(', 0 NOT BLOCKED, ')
  })

  test('removes what one has left that was killed', async () => {
    using tmp = tempDir()
    const child = await underWay(tmp.path)
    child.kill('SIGKILL')
    await child.exited
    expect(leftBy(child.pid, tmp.path)).not.toEqual([])
    await runRuntime(['doctor', '--escape'], { env: { TMPDIR: tmp.path } })
    expect(leftBy(child.pid, tmp.path)).toEqual([])
    expect(readdirSync(tmp.path)).toEqual([])
  })

  test('refuses a root that is none', async () => {
    expect(await runRuntime(['doctor', '--escape', '--rootfs', '/no/such/root'])).toMatchObject({
      exitCode: 2,
      stderr: 'taskmill-runtime: --rootfs: /no/such/root is no directory\n',
    })
  })

  test('refuses a root without an escape', async () => {
    expect(await runRuntime(['doctor', '--rootfs', '/'])).toMatchObject({
      exitCode: 2,
      stderr: 'taskmill-runtime: --rootfs is for doctor --escape\n',
    })
  })
})
