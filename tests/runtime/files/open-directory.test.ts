/** Goal: a directory that another task removes while it is read has come to its end. Method: directories that are removed. */
import { expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { faultMessage, OpenDirectory } from '../../../runtime/files/open-directory.ts'
import { tempDir } from '../../support/temp.ts'

/** More than are read at once. */
const MANY = 2_000

test('a directory that was removed has no entries', () => {
  using temp = tempDir()
  const path = join(temp.path, 'd')
  mkdirSync(path)
  using opened = OpenDirectory.open(path)
  rmSync(path, { recursive: true })
  expect([...opened.entries()]).toEqual([])
})

test('a directory that is removed while it is read ends there', () => {
  using temp = tempDir()
  const path = join(temp.path, 'd')
  mkdirSync(path)
  for (let i = 0; i < MANY; i++) writeFileSync(join(path, `${i}`), '')
  using opened = OpenDirectory.open(path)
  let found = 0
  for (const entries of opened.entries()) {
    found += entries.length
    rmSync(path, { recursive: true, force: true })
  }
  expect(found).toBeGreaterThan(0)
  expect(found).toBeLessThan(MANY)
})

test.each([
  ["ENOSPC: no space left on device, mkdir '/proc/self/fd/25/z2'", 'ENOSPC: no space left on device, mkdir'],
  [
    "EXDEV: cross-device link, rename '/proc/self/fd/2/it's\n' -> '/proc/self/fd/3/b'",
    'EXDEV: cross-device link, rename',
  ],
  ["EACCES: permission denied, open '/home/a'", "EACCES: permission denied, open '/home/a'"],
])('the message of a fault names no descriptors: %j', (message, expected) => {
  expect(faultMessage(new Error(message))).toBe(expected)
})
