/** A directory of the system is never taken for the files of a service, whichever way it is written. */
import { expect, test } from 'bun:test'
import { realpathSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../../shared/contract/errors.ts'
import { claimDataDirectory, refuseSystemDirectory } from '../../../shared/files/data-directory.ts'
import { LOCK_FILES } from '../../../shared/files/directory-lock.ts'
import { tempDir } from '../../support/temp.ts'

test.each([
  '/',
  '//',
  '/tmp/..',
  '/usr',
  '/usr/',
  '/etc',
  '/dev',
  '/proc',
  '/sys',
  '/bin',
  '/usr/../etc/.',
  '/usr/bin',
])('%s is refused', (path) => expect(() => refuseSystemDirectory(path)).toThrow(UsageError))

test('so is a link to one', () => {
  using dir = tempDir()
  const link = join(dir.path, 'link')
  symlinkSync('/usr', link)
  expect(() => refuseSystemDirectory(link)).toThrow(`--data-dir ${link} is a directory of the system`)
})

test.each([
  '/var/lib/taskmill',
  '/dev/shm/taskmill',
  '/usr/local/var/taskmill',
  '/home',
  '/tmp',
  'data',
  '/not-there/x',
])('%s is not', (path) => expect(() => refuseSystemDirectory(path)).not.toThrow())

test('is made with all above it, for its owner only, and may be there already', () => {
  using dir = tempDir()
  const path = join(dir.path, 'a', 'b')
  const claimed = claimDataDirectory(path, LOCK_FILES.control)
  expect(claimed.path).toBe(realpathSync(path))
  expect(statSync(path).mode & 0o777).toBe(0o700)
  claimed.keep()
  expect(claimDataDirectory(path, LOCK_FILES.runtime).path).toBe(claimed.path)
})

test('is refused with its path and a remedy if it cannot be made', () => {
  using dir = tempDir()
  const path = join(dir.path, 'file')
  writeFileSync(path, '')
  const claim = (dataDir: string) => () => claimDataDirectory(dataDir, LOCK_FILES.control)
  expect(claim(path)).toThrow(UsageError)
  expect(claim(join(path, 'below'))).toThrow(`cannot make the data directory ${path}/below: `)
  expect(claim(path)).toThrow('choose another with --data-dir)')
})
