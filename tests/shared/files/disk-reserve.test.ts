/** Space that is kept for what must be written on a full disk. Method: a small file system. */
import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DiskReserve } from '../../../shared/files/disk-reserve.ts'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { tempDir } from '../../support/temp.ts'

describe.skipIf(!canMount)('the reserve (needs root, to mount a small disk)', () => {
  test('is as large as ever once a disk that was full at the start has space', () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), 1024 * 1024)
    disk.fill()
    const reserve = new DiskReserve(disk.path)
    expect(reserve.exists).toBe(false)
    disk.free()
    reserve.restore()
    const segment = join(disk.path, 'segment')
    expect(reserve.moveTo(segment)).toBe(128 * 1024)
    expect(statSync(segment).size).toBe(128 * 1024)
  })
})
