/** Goal: a directory that is gone is noticed, and none is that exists. Method: real directories, removed in each way. */
import { expect, test } from 'bun:test'
import { closeSync, mkdirSync, openSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { HeldDirectory } from '../../../shared/files/held-directory.ts'
import { tempDir } from '../../support/temp.ts'

test.each<[string, (path: string) => void, string | undefined]>([
  ['was left alone', () => {}, undefined],
  ['was deleted', (path) => rmSync(path, { recursive: true }), 'was deleted or moved'],
  ['was moved', (path) => renameSync(path, `${path}-moved`), 'was deleted or moved'],
  [
    'was replaced',
    (path) => {
      renameSync(path, `${path}-moved`)
      mkdirSync(path)
    },
    'was replaced by another one',
  ],
  ['was emptied', (path) => unlinkSync(join(path, 'file')), 'was emptied'],
])('a directory that %s', (_, change, fault) => {
  using dir = tempDir()
  const path = join(dir.path, 'data')
  mkdirSync(path)
  const directory = new HeldDirectory(path)
  const file = openSync(join(path, 'file'), 'w')
  change(path)
  if (fault === undefined) directory.check(file)
  else expect(() => directory.check(file)).toThrow(fault)
  closeSync(file)
  directory.close()
})

test('on a file system that reports no links of anything is not taken to be emptied', () => {
  using dir = tempDir()
  // What was deleted has no links either.
  const path = join(dir.path, 'data')
  mkdirSync(path)
  const file = openSync(join(path, 'file'), 'w')
  const fd = openSync(path, 'r')
  rmSync(path, { recursive: true })
  const directory = new HeldDirectory(`/proc/self/fd/${fd}`)
  directory.check(file)
  directory.close()
  for (const open of [file, fd]) closeSync(open)
})
