/** Goal: what is hidden from tasks is known by its real path, once. Method: links in a directory of the test. */
import { expect, test } from 'bun:test'
import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_MASKS, findSandboxPaths } from '../../../runtime/host/sandbox-paths.ts'
import { tempDir } from '../../support/temp.ts'

test('the data directory and the usual places are hidden, and what the settings name', () => {
  const { masks, exposed } = findSandboxPaths({
    ...{ dataDir: '/data', sandboxMask: ['/srv/keys', '/data'], sandboxExpose: ['/home/ada/public'] },
  })
  const usual = DEFAULT_MASKS.map((path) => realpathSync(path))
  expect(masks).toEqual([...new Set([...usual, '/data', '/srv/keys'])])
  expect(exposed[0]).toBe('/home/ada/public')
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
