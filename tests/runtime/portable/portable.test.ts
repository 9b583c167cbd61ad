/** Goal: the pure parts of the portable launcher agree with the other side. Method: what one writes the other reads. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { launcherArguments } from '../../../runtime/launch/arguments.ts'
import type { LaunchPlan } from '../../../runtime/launch/plan.ts'
import { parseArguments } from '../../../runtime/portable/arguments.ts'
import { unwrapEnvironment, wrapEnvironment } from '../../../runtime/portable/environment.ts'
import { groupSize, identityByCommands, sizeByCommand } from '../../../runtime/portable/processes.ts'

const count = fc.integer({ min: 1, max: 999_999_999_999_999 })
const text = fc.string({ minLength: 1 })
const fd = fc.integer({ min: 3, max: 1_000 })
const plan = fc.record(
  {
    task_id: fc.stringMatching(/^[A-Za-z0-9._-]{1,128}$/),
    task_dir: text,
    task_dir_id: fc.stringMatching(/^\d{1,19}:\d{1,19}$/),
    workdir: text,
    stdin: text,
    command: fc.tuple(text, fc.array(fc.string())).map(([program, args]): [string, ...string[]] => [program, ...args]),
    ...{ wall_time_ms: count, grace_ms: fc.nat(), give_up_ms: fc.nat(), max_output_bytes: count },
    ...{ disk_bytes: count, cpu_time_sec: count, address_space_bytes: count },
  },
  { requiredKeys: ['task_id', 'task_dir', 'workdir', 'command', 'wall_time_ms', 'grace_ms', 'max_output_bytes'] },
)
const descriptors = fc.record({ lock_fd: fd, notify_fd: fd }, { requiredKeys: [] })

test('a command line is read back as the plan it was made of', () => {
  fc.assert(
    fc.property(plan, descriptors, (plan, descriptors) => {
      expect(parseArguments(launcherArguments(plan as LaunchPlan, descriptors))).toEqual({
        plan: plan as LaunchPlan,
        descriptors,
      })
    }),
  )
})

describe('an environment', () => {
  const name = fc.stringMatching(/^[^=\0]+$/)
  const env = fc.dictionary(name, fc.string()).map((given) => ({ ...given }))

  test('comes out as it went in, whatever the launcher has of its own', () => {
    fc.assert(
      fc.property(env, (given) => expect(unwrapEnvironment({ ...wrapEnvironment(given), HOME: '/' })).toEqual(given)),
    )
  })

  test('changes nothing for the launcher on its way', () => {
    const wrapped = wrapEnvironment({ BUN_BE_BUN: '1', BUN_OPTIONS: '--cpu-prof', PATH: '/x', TASKMILL_TASK: 'task-1' })
    expect(wrapped).toEqual({
      TASKMILL_ENV_BUN_BE_BUN: '1',
      TASKMILL_ENV_BUN_OPTIONS: '--cpu-prof',
      TASKMILL_ENV_PATH: '/x',
      TASKMILL_ENV_TASKMILL_TASK: 'task-1',
      // By it a sweep finds the launcher as well as the task.
      TASKMILL_TASK: 'task-1',
    })
  })
})

const why = Bun.which('ps') === null ? ' (skipped: ps is not here)' : ''

test.skipIf(why !== '')(`who runs, and how many, is known without /proc, by ps${why}`, () => {
  const before = Math.floor(Date.now() / 1_000)
  const child = Bun.spawn(['sleep', '600'], { stdio: ['ignore', 'ignore', 'ignore'], detached: true })
  try {
    const { pid, start_time } = identityByCommands(child.pid)
    expect(pid).toBe(child.pid)
    // The kernel counts from boot, so the second may be off by one.
    expect(start_time).toBeGreaterThanOrEqual(before - 2)
    expect(start_time).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000) + 2)
    expect([sizeByCommand(child.pid), groupSize(child.pid)]).toEqual([1, 1])
  } finally {
    child.kill()
  }
  expect([sizeByCommand(999_999_999), groupSize(999_999_999)]).toEqual([0, 0])
})
