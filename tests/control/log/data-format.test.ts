/** Goal: a service never reads a data directory of a newer one, and leaves it as it is. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DATA_FORMAT, raiseFormat, refuseNewerFormat } from '../../../control/log/data-format.ts'
import { recover } from '../../../control/log/recovery.ts'
import { UsageError } from '../../../shared/contract/errors.ts'
import { VERSION } from '../../../shared/process/version.ts'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { tempDir } from '../../support/temp.ts'

const write = (dir: string, text: string) => writeFileSync(join(dir, 'format.json'), text)

test('a directory without a mark has the first format, and needs no mark for it', () => {
  using dir = tempDir()
  refuseNewerFormat(dir.path)
  raiseFormat(dir.path, 1)
  expect(readdirSync(dir.path)).toEqual([])
})

test('a mark is raised and never lowered', () => {
  using dir = tempDir()
  raiseFormat(dir.path, DATA_FORMAT)
  raiseFormat(dir.path, 2)
  raiseFormat(dir.path)
  expect(JSON.parse(readFileSync(join(dir.path, 'format.json'), 'utf8'))).toEqual({
    format: DATA_FORMAT,
    written_by: VERSION,
  })
  refuseNewerFormat(dir.path, DATA_FORMAT)
  expect(() => refuseNewerFormat(dir.path, 3)).toThrow(UsageError)
})

test.skipIf(!canMount)(
  'a mark that the disk has no room for is refused with the remedy (needs root, to mount a small disk)',
  () => {
    using temp = tempDir()
    using disk = smallDisk(join(temp.path, 'disk'), 64 * 1024)
    disk.fill()
    expect(() => raiseFormat(disk.path)).toThrow(
      /cannot write .*format\.json: ENOSPC.* \(free some space, or inodes, on its disk\)$/,
    )
    disk.free()
    raiseFormat(disk.path)
    refuseNewerFormat(disk.path)
  },
)

describe('a start in a directory of a newer format', () => {
  // A frame of a kind that this version does not know. Without the mark it would count as a torn tail.
  const journal = '00000000 0000000002 0000000000 z\n{}\n'

  test('is refused in one line with both versions and a remedy, before a file is touched', async () => {
    using dir = tempDir()
    write(dir.path, JSON.stringify({ format: DATA_FORMAT + 1, written_by: '9.8.7' }))
    writeFileSync(join(dir.path, 'journal-0000000001.log'), journal)
    writeFileSync(join(dir.path, 'state.json'), 'a form that this version does not know')
    await expect(recover(dir.path)).rejects.toThrow(
      new UsageError(
        `the data directory ${dir.path} was written by a newer taskmill-control (9.8.7, its format is ${DATA_FORMAT + 1}, this one knows ${DATA_FORMAT}): use that one, or choose another directory with --data-dir`,
      ),
    )
    expect(readFileSync(join(dir.path, 'journal-0000000001.log'), 'utf8')).toBe(journal)
  })

  test('is possible again in the same directory once the mark is one that it knows', async () => {
    using dir = tempDir()
    write(dir.path, JSON.stringify({ format: DATA_FORMAT, written_by: VERSION }))
    expect((await recover(dir.path)).graphs).toEqual([])
  })
})

test.each([
  '',
  '{',
  '[]',
  '{}',
  '{"format": 0, "written_by": "1"}',
  '{"format": 1.5, "written_by": "1"}',
  '{"format": "2", "written_by": "1"}',
  '{"format": 1}',
])('a mark that is %j is refused and left as it is', (text) => {
  using dir = tempDir()
  write(dir.path, text)
  for (const work of [() => refuseNewerFormat(dir.path), () => raiseFormat(dir.path, 2)])
    expect(work).toThrow(`cannot read the format file ${dir.path}/format.json: `)
  expect(readFileSync(join(dir.path, 'format.json'), 'utf8')).toBe(text)
  expect(existsSync(join(dir.path, 'format.json.new'))).toBe(false)
})
