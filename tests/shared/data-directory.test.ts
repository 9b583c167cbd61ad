/** A directory of the system is never taken for the files of a service, whichever way it is written. */
import { expect, test } from 'bun:test'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { refuseSystemDirectory } from '../../shared/data-directory.ts'
import { UsageError } from '../../shared/errors.ts'
import { tempDir } from '../support/temp.ts'

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
