/** Goal: what is hidden from tasks is known by its real path, once. Method: links in a directory of the test. */
import { expect, test } from 'bun:test'
import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_MASKS, findSandboxPaths, MAX_SANDBOX_PATHS } from '../../../runtime/host/sandbox-paths.ts'
import { UsageError } from '../../../shared/contract/errors.ts'
import { tempDir } from '../../support/temp.ts'

test('the data directory and the usual places are hidden, and what the settings name', () => {
  const { masks, exposed } = findSandboxPaths({
    ...{ dataDir: '/data', sandboxMask: ['/srv/keys', '/data'], sandboxExpose: ['/home/ada/public'] },
  })
  const usual = DEFAULT_MASKS.map((path) => realpathSync(path))
  expect(masks).toEqual([...new Set([...usual, '/data', '/srv/keys'])])
  expect(exposed[0]).toBe('/home/ada/public')
})

test('the file with the token of the service is hidden; a descriptor is nothing to hide', () => {
  const masksWith = (tokenFile: string) =>
    findSandboxPaths({ dataDir: '/data', tokenFile, sandboxMask: [], sandboxExpose: [] }).masks
  expect(masksWith('/etc/hostname').at(-1)).toBe('/etc/hostname')
  expect(masksWith('package.json').at(-1)).toBe(realpathSync('package.json'))
  for (const nothing of ['', '/dev/fd/3', '/proc/self/fd/3']) expect(masksWith(nothing).at(-1)).toBe('/data')
})

test('links are followed, and what is not there is kept as it is', () => {
  using dir = tempDir()
  mkdirSync(join(dir.path, 'real'))
  symlinkSync('real', join(dir.path, 'link'))
  const [link, missing] = [join(dir.path, 'link'), join(dir.path, 'missing')]
  const { masks, exposed } = findSandboxPaths({ dataDir: '/data', sandboxMask: [link, missing], sandboxExpose: [link] })
  expect(masks.slice(-2)).toEqual([join(dir.path, 'real'), missing])
  expect(exposed).toContain(join(dir.path, 'real'))
})

test('names of hosts can be looked up, wherever the file for that lies', () => {
  const resolver = realpathSync('/etc/resolv.conf')
  const { exposed } = findSandboxPaths({ dataDir: '/data', sandboxMask: [], sandboxExpose: [] })
  expect(exposed).toEqual(resolver === '/etc/resolv.conf' ? [] : [resolver])
})

const given = (sandboxMask: readonly string[], sandboxExpose: readonly string[] = []) =>
  findSandboxPaths({ dataDir: '/data', sandboxMask, sandboxExpose })

test.each([
  ['/', /^--sandbox-mask \/: no sandbox can be made without \/dev /],
  ['/dev', /^--sandbox-mask \/dev: no sandbox can be made without \/dev /],
  ['/proc', /^--sandbox-mask \/proc: no sandbox can be made without \/proc /],
  ['/dev/../proc/', /^--sandbox-mask \/dev\/..\/proc\/: no sandbox can be made without \/proc /],
  ['/proc/sys', /^--sandbox-mask \/proc\/sys: no sandbox can be made without .*max_user_namespaces /],
  ['/proc/sys/user/max_user_namespaces', / without \/proc\/sys\/user\/max_user_namespaces /],
  ['/proc/self/environ', /^--sandbox-mask \/proc\/self\/environ: what \/proc has of a process cannot be hidden/],
  ['/proc/mounts', /^--sandbox-mask \/proc\/mounts: /],
])('what no sandbox can be made without, or cannot hide, is refused: %p', (path, message) => {
  expect(() => given([path])).toThrow(UsageError)
  expect(() => given([path])).toThrow(message)
})

test('parts of /proc and /dev may be hidden, and shown', () => {
  const { masks, exposed } = given(['/proc/cpuinfo', '/proc/sys/kernel', '/dev/shm'], ['/dev/full'])
  expect(masks.slice(-3)).toEqual(['/proc/cpuinfo', '/proc/sys/kernel', realpathSync('/dev/shm')])
  expect(exposed).toContain('/dev/full')
  expect(() => given([], ['/dev'])).toThrow('--sandbox-expose /dev: tasks have a /dev of their own')
})

test('at most as many places as a launcher takes', () => {
  const places = (count: number) => Array.from({ length: count }, (_, i) => `/srv/place-${i}`)
  const usual = given([]).masks.length
  expect(given(places(MAX_SANDBOX_PATHS - usual)).masks).toHaveLength(MAX_SANDBOX_PATHS)
  expect(() => given(places(MAX_SANDBOX_PATHS - usual + 1))).toThrow('--sandbox-mask: 129 places')
  expect(() => given([], places(MAX_SANDBOX_PATHS + 1))).toThrow(/^--sandbox-expose: 1\d\d places.*at most 128/)
})
