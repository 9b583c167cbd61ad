/**
 * A user who has no process to spare: a task that takes them all does not end control, which keeps the last ones for
 * itself. Source: docs/http.md, shell.
 * Method: a limit on processes (RLIMIT_NPROC) of a user that nobody else has, used up by a task.
 */
import { describe, expect, test } from 'bun:test'
import { startControl } from '../support/control.ts'
import { asOrdinaryUser } from '../support/ordinary-user.ts'
import { FORK_BOMB, withProcessLimit } from '../support/process-filler.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
const TRUE = { type: 'shell', params: { command: '/bin/true' } }

describe.skipIf(!isRoot)(
  `a shell task that forks without end${isRoot ? '' : ' (skipped: only root can become another user)'}`,
  () => {
    test('takes no process from the service', async () => {
      const { through = [], ...user } = await asOrdinaryUser([], 'taskmill-control')
      const env = { SERVICE_SHELL_POLICY: 'open' }
      await using control = await startControl({ ...user, env, through: [...withProcessLimit(), ...through] })
      const { task_ids } = await control.submit([{ id: 'bomb', type: 'shell', params: { script: FORK_BOMB } }])
      const bomb = task_ids[0]!
      await until(
        async () => (await control.fetch(`/tasks/${bomb}/logs`)).text(),
        (log) => log.includes('full\n'),
      )
      const refused = await until(
        () => control.run(TRUE),
        ({ status }) => status === 'failed',
      )
      expect(refused.runtime?.error).toMatchObject({
        code: 'launch_failed',
        message: 'cannot start /bin/true: the user of the service has no process left for tasks (ulimit -u)',
      })
      // The first request of its own, for which Bun makes a thread.
      expect(await control.run({ type: 'http', params: { url: `${control.url}/readyz` } })).toMatchObject({
        status: 'success',
      })
      expect((await control.fetch(`/tasks/${bomb}/cancel`, { method: 'POST' })).status).toBe(202)
      expect(await control.ended(bomb)).toMatchObject({ status: 'cancelled' })
      // Those that lost their parent count until the first process of the machine has reaped them.
      await until(
        () => control.run(TRUE),
        ({ status }) => status === 'success',
      )
    })
  },
)
