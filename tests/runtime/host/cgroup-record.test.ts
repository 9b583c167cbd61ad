/** Goal: a record is read as it was written, whatever the path is. Method: plain directories, which take the same names. */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { ownRecord, readRecords, removeEmptyCgroups, writeRecord } from '../../../runtime/host/cgroup-record.ts'
import { tempDir } from '../../support/temp.ts'

test.each(['/', `/${'x'.repeat(254)}`, `/${'ü"\\'.repeat(1_000)}`, `/${'\u0001'.repeat(4_094)}`])('path %#', (path) => {
  using dir = tempDir()
  writeRecord(dir.path, ownRecord('/earlier'))
  writeRecord(dir.path, ownRecord(path))
  expect(readRecords(dir.path)).toEqual([ownRecord(path)])
  expect(removeEmptyCgroups(dir.path)).toBe(true)
  mkdirSync(dir.path) // it is removed at the end
})

test('any path', () => {
  using dir = tempDir()
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), (path) => {
      writeRecord(dir.path, ownRecord(path))
      expect(readRecords(dir.path).map((record) => record?.data_dir)).toEqual([path])
    }),
    { numRuns: 50 },
  )
})

test('one of which a part is not there yet is null', () => {
  using dir = tempDir()
  writeRecord(dir.path, ownRecord(`/${'x'.repeat(1_000)}`))
  const names = readdirSync(dir.path)
  expect(names.length).toBeGreaterThan(3)
  rmdirSync(join(dir.path, names[1]!))
  expect(readRecords(dir.path)).toEqual([null])
})
