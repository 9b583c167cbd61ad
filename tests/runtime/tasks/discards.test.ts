/** Goal: what cannot be removed at once is removed later. Method: a mount in it, which is taken away. */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Discards } from '../../../runtime/tasks/discards.ts'
import { createLog } from '../../../shared/logs/log.ts'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

test.skipIf(!canMount)(
  'a directory that cannot be removed yet is tried again until it is gone, and told once',
  async () => {
    using temp = tempDir()
    const dir = join(temp.path, 'workspace')
    mkdirSync(dir)
    writeFileSync(join(dir, 'file'), '')
    const told: string[] = []
    const log = createLog({ write: (line) => void told.push(line), drain: async () => {} }, 'warn', 'test')
    const discards = new Discards({ dataDir: temp.path, config: { gcIntervalMs: 5 }, log })
    const trash = join(temp.path, 'trash')
    {
      using _ = smallDisk(join(dir, 'mounted'), 1024 * 1024)
      discards.take('t', dir)
      await until(
        () => told.length,
        (lines) => lines > 0,
      )
      expect(readdirSync(trash).length).toBe(1)
      Bun.spawnSync(['umount', '-l', join(trash, readdirSync(trash)[0]!, 'mounted')])
    }
    await until(() => readdirSync(trash).length, 0)
    expect(told.length).toBe(1)
  },
)
