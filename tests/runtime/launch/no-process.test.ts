/**
 * Goal: a launch that the machine refuses for want of processes or memory is told with its step and errno, and leaves
 * nothing that keeps the same task from being launched again. Method: strace lets the call fail that makes a process, then
 * the launcher is started again in the same directory.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { constants } from 'node:os'
import type { TaskCgroup } from '../../../runtime/host/task-cgroups.ts'
import { removeRecord } from '../../../runtime/launch/launcher-files.ts'
import type { LaunchSandbox } from '../../../runtime/launch/plan.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import { launch, run, sh, shippedLauncher } from '../../support/launchers.ts'
import { missingSandbox, SANDBOX_UID, USUAL } from '../../support/sandboxes.ts'
import { tempDir } from '../../support/temp.ts'
import { missingTrace } from '../../support/trace.ts'

const isRoot = process.getuid?.() === 0
const sandbox: Omit<LaunchSandbox, 'workspace'> = { features: USUAL, ...(isRoot && { uid: SANDBOX_UID }) }

/** Steps with the calls that they make. Only x86-64 has a call of its own for vfork, by which an init makes the task. */
const STEPS = [
  ['fork', 'launch_failed', 'fork,vfork,clone,clone3', {}],
  ['namespaces', 'sandbox_setup_failed', 'clone,clone3', { sandbox }],
  ...(process.arch === 'x64' ? ([['init', 'sandbox_setup_failed', 'vfork', { sandbox }]] as const) : []),
] as const

const pathsOf = (group: TaskCgroup): (string | undefined)[] =>
  group.version === 2 ? [group.path] : [group.pids_path, group.memory_path]

const why = missingTrace ?? missingSandbox ?? missingCgroups
const skipped = why === undefined ? '' : ` (skipped: ${why})`

describe.skipIf(why !== undefined)(`a launcher that is refused a process${skipped}`, () => {
  test.each(STEPS)('says so, step %s, and leaves no group and no process', async (step, how, calls, more) => {
    for (const code of ['EAGAIN', 'ENOMEM'] as const) {
      await using groups = testCgroups()
      using dir = tempDir()
      const cgroup = groups.tasks.forTask('task-1')!
      const asked = { command: sh('exit 7'), task_dir: dir.path, cgroup, ...more }
      const injection = ['-e', `trace=${calls}`, '-e', `inject=${calls}:error=${code}`]
      const through = ['sh', '-c', 'exec strace "$@" 2> /dev/null', 'sh', '-f', '-qq', '-o', '/dev/null', ...injection]
      const refused = await run(shippedLauncher, { ...asked, through })
      expect([refused.ending, refused.code]).toEqual([{ how, step, errno: constants.errno[code] }, 125])
      expect(refused.leftovers_alive).toBe(0)
      expect(pathsOf(cgroup).filter((path) => path !== undefined && existsSync(path))).toEqual([])
      expect(readdirSync(dir.path).sort()).toEqual(['outcome', 'stderr.log', 'stdout.log'])

      removeRecord(dir.path)
      await using again = launch(shippedLauncher, asked)
      expect((await again.outcome()).ending).toEqual({ how: 'exited', exit_code: 7 })
    }
  })
})
