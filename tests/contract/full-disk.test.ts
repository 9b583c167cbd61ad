/**
 * A disk without a free byte: tasks can be cancelled and deleted, and a task that cannot go on says why. Against the
 * built services on a small file system, which a task keeps full.
 */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** Long enough that only the journal is written while a test runs. */
const NO_SNAPSHOT = ['--persist-interval', '1h', '--kill-grace', '200ms']

describe.skipIf(!canMount)('on a disk that a task keeps full (needs root, to mount a small one)', () => {
  test('the task can be cancelled, another can be deleted, and both survive SIGKILL', async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), 2 * 1024 * 1024)
    const dataDir = join(disk.path, 'data')
    const go = join(dir.path, 'go')
    {
      await using control = await startControl({ dataDir, env: { SERVICE_SHELL_POLICY: 'open' }, flags: NO_SNAPSHOT })
      await control.run({ id: 'old', type: 'noop' })
      const script = `while :; do cat /dev/zero >> ${disk.ballast} 2>/dev/null; [ -e ${go} ] || sleep 0.001; done`
      await control.submit([
        { id: 'filler', type: 'shell', params: { script } },
        { id: 'after', type: 'noop', depends_on: ['filler'] },
        { id: 'sleeper', type: 'sleep', params: { duration_ms: 600_000 } },
      ])
      await control.reached('filler', 'running')
      await control.reached('sleeper', 'running')
      await until(
        () =>
          control.post({
            scope: 'graph',
            tasks: [{ id: 'more', type: 'noop', params: { message: 'x'.repeat(50_000) } }],
          }),
        ({ status }) => status === 503,
      )
      for (const id of ['sleeper', 'filler']) {
        const answer = await control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })
        expect([id, answer.status, answer.status === 202 ? '' : await answer.text()]).toEqual([id, 202, ''])
        expect(await control.ended(id)).toMatchObject({ status: 'cancelled' })
      }
      expect((await control.fetch('/tasks/old', { method: 'DELETE' })).status).toBe(204)
      expect((await control.get('after')).status).toBe('skipped')
      writeFileSync(go, '')
      await control.stop('SIGKILL')
    }
    disk.free()
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    const listed = (await control.list()).filter(({ id }) => id !== 'more')
    expect(listed.map(({ id, status }) => [id, status])).toEqual([
      ['filler', 'cancelled'],
      ['after', 'skipped'],
      ['sleeper', 'cancelled'],
    ])
  })
})
