/**
 * Goal: to kill a launcher before its task has begun harms nobody: another takes the task, which runs once, and what the
 * first had made for it is not in the way. Method: tasks in sandboxes, which take a while to set up, with control groups;
 * the launcher of each is killed a moment after it was asked for.
 */
import { describe, expect, test } from 'bun:test'
import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeAttribute } from '../../../runtime/host/cgroup-files.ts'
import { readRecord } from '../../../runtime/launch/launcher-files.ts'
import type { LaunchPlan } from '../../../runtime/launch/plan.ts'
import { systemCodeOf } from '../../../shared/contract/errors.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import { LauncherService } from '../../support/launcher-service.ts'
import { describeLaunchers, launch, sh } from '../../support/launchers.ts'
import { MASKS, missingSandbox, SANDBOX_UID, USUAL } from '../../support/sandboxes.ts'
import { childrenOf } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const TASKS = 24
const isRoot = process.getuid?.() === 0

const missing = missingSandbox ?? missingCgroups
const why = missing === undefined ? '' : ` (skipped: ${missing})`

/** As a sandbox of `workspace`, which is given to its user. */
function sandboxOf(workspace: string): Pick<LaunchPlan, 'sandbox' | 'workdir'> {
  mkdirSync(workspace)
  if (isRoot) chownSync(workspace, SANDBOX_UID, SANDBOX_UID)
  const uid = isRoot ? { uid: SANDBOX_UID } : {}
  return { workdir: workspace, sandbox: { features: USUAL, masks: MASKS, workspace, ...uid } }
}

/** A launcher that is through with its task may end between the look at it and the signal. */
function killIfThere(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (systemCodeOf(error) !== 'ESRCH') throw error
    return false
  }
}

describe.skipIf(missing !== undefined)(`with sandboxes and control groups${why}`, () => {
  describeLaunchers(
    'a launcher that is killed early',
    (variant) => {
      test('is replaced by another, and the task runs once', async () => {
        await using groups = testCgroups()
        await using our = new LauncherService({ variant })
        let replaced = 0
        // Where the test itself is often held up, each launcher may have begun before it is killed.
        for (let i = 0; i < TASKS || (replaced === 0 && i < 3 * TASKS); i++) {
          const id = `task-${i}`
          const plan = our.planOf(id, sh('echo ran >> ran'))
          const workspace = join(plan.task_dir, 'workspace')
          const limits = { cgroup: groups.tasks.forTask(id)!, memory_max: 2 ** 28, pids_max: 16 }
          const task = our.startPlan({ ...plan, ...sandboxOf(workspace), ...limits })
          const pid = our.forkServerPid!
          let isGone = false
          void task.gone.then(() => {
            isGone = true
          })
          // On a busy machine a launcher may come and go between two looks.
          await until(() => isGone || childrenOf(pid).length > 0)
          const until_ms = performance.now() + (i % 12) / 4
          while (performance.now() < until_ms);
          const isKilled = childrenOf(pid).map(killIfThere).includes(true)
          const { exitCode } = await task.gone
          const ran = existsSync(join(workspace, 'ran')) ? readFileSync(join(workspace, 'ran'), 'utf8') : ''
          if (exitCode === 0) {
            if (isKilled) replaced++
            expect([id, ran, groups.tasks.taskIds()]).toEqual([id, 'ran\n', []])
          } else {
            // It had begun: a task is never run twice.
            expect([id, exitCode, readRecord(plan.task_dir).process]).toEqual([id, 137, expect.anything()])
            expect(['', 'ran\n']).toContain(ran)
            expect(await groups.tasks.end(id)).toBe(true)
          }
        }
        expect(replaced).toBeGreaterThan(0)
        expect(our.complaints()).toBe('')
      }, 120_000)
    },
    { isPortableIncluded: false },
  )
})

describe.skipIf(missingCgroups !== undefined)(`with control groups${why}`, () => {
  describeLaunchers(
    'a launcher that comes after one that was killed',
    (variant) => {
      test('waits for what is being ended in the group of its task', async () => {
        await using groups = testCgroups()
        const cgroup = groups.tasks.forTask('task-1')!
        using dir = tempDir()
        const task_dir = join(dir.path, 'task')
        mkdirSync(task_dir)
        // Ends by itself once the launcher is under way: that waits for a second, which may pass before a test comes to it.
        const left = Bun.spawn([
          'sh',
          '-c',
          'while [ -d "$0" ] && [ ! -e "$0/stderr.log" ]; do sleep 0.01; done',
          task_dir,
        ])
        for (const path of cgroup.version === 2 ? [cgroup.path] : [cgroup.pids_path!, cgroup.memory_path!]) {
          mkdirSync(path)
          writeAttribute(path, 'cgroup.procs', String(left.pid))
        }
        await using task = launch(variant, { command: sh('exit 3'), cgroup, pids_max: 4, task_dir })
        expect((await task.outcome()).ending).toEqual({ how: 'exited', exit_code: 3 })
        expect(await left.exited).toBe(0)
        expect(groups.tasks.taskIds()).toEqual([])
      })
    },
    { isPortableIncluded: false },
  )
})
