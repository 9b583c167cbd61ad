/**
 * Cgroups of a test, below the cgroup of the test run. They are removed at the end, with all their processes.
 *
 * Tests that need them are skipped on a machine without writable cgroups, with the reason in their names.
 * TASKMILL_MUST_CGROUP=1 makes them fail instead.
 */
import { leaveCgroups, TaskCgroups } from '../../runtime/host/task-cgroups.ts'
import { TEST_CGROUP_ROOT } from '../../scripts/left-cgroups.ts'

interface TestCgroups extends AsyncDisposable {
  readonly tasks: TaskCgroups
}

/** Several services of a test may share it. */
const ROOT = `${TEST_CGROUP_ROOT}-${process.pid}`

export function testCgroups(serviceId = 'service'): TestCgroups {
  const tasks = TaskCgroups.prepare({ root: ROOT, serviceId })
  const remove = async () => {
    for (const taskId of tasks.taskIds()) {
      if (!(await tasks.end(taskId))) throw new Error(`the group of ${taskId} would not go`)
    }
    leaveCgroups(tasks)
  }
  return { tasks, [Symbol.asyncDispose]: remove }
}

/** Why there can be no groups here, or undefined. */
export const missingCgroups = ((): string | undefined => {
  const { tasks } = testCgroups()
  leaveCgroups(tasks)
  if (tasks.missing.length === 0) return undefined
  const reason = tasks.missing.map((missing) => missing.reason).join('; ')
  if (process.env.TASKMILL_MUST_CGROUP === '1') throw new Error(`control groups cannot be used: ${reason}`)
  return reason
})()
