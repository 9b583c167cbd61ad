/** Which launches are tried again: those that the machine refused, and no others. Method: a table of steps and errors. */
import { expect, test } from 'bun:test'
import { constants } from 'node:os'
import { explainSpawnFailure, FAULT_STEPS } from '../../../runtime/launch/faults.ts'
import type { Outcome } from '../../../runtime/launch/outcome.ts'
import type { Ending } from '../../../runtime/tasks/ending.ts'
import { endingOf } from '../../../runtime/tasks/launch-ending.ts'
import { refusalOf } from '../../../runtime/tasks/launch-refusal.ts'

const { EAGAIN, ENOMEM, EPERM, ENOSPC } = constants.errno
const asked = { program: 'a', workdir: '/', wall_time_ms: 1, max_output_bytes: 1 }

const ended = (
  step: string,
  errno: number,
  more: Partial<Outcome> = {},
  how: 'launch_failed' | 'sandbox_setup_failed' = 'launch_failed',
): Ending =>
  endingOf(
    {
      ending: { how, step, errno },
      ...{ reason: 'none', finished_ms: 1, duration_ms: 0, leftovers_killed: 0, leftovers_alive: 0, ...more },
    },
    asked,
  )

test('where a process is to be made, want of processes and of memory pass; nothing else does', () => {
  const passing = FAULT_STEPS.flatMap((step) =>
    [EAGAIN, ENOMEM, EPERM, ENOSPC]
      .filter((errno) => refusalOf(ended(step, errno)) !== undefined)
      .map((e) => [step, e]),
  )
  expect(passing).toEqual([
    ['namespaces', EAGAIN],
    ['namespaces', ENOMEM],
    ['init', EAGAIN],
    ['fork', EAGAIN],
    ['fork', ENOMEM],
    ['exec', EAGAIN],
  ])
  expect(refusalOf(ended('namespaces', EAGAIN, {}, 'sandbox_setup_failed'))?.code).toBe('sandbox_setup_failed')
})

test.each([
  ['EAGAIN', true],
  ['ENOMEM', true],
  ['EMFILE', false],
  ['EACCES', false],
] as const)('a launcher that cannot be started for %s: %p', (code, isShortage) => {
  const error = { code: 'launch_failed', ...explainSpawnFailure(code)! } as const
  expect(refusalOf({ status: 'failed', error, finishedAt: 1 }) !== undefined).toBe(isShortage)
})

test('what was asked to end, what has left something, and what has run is not tried again', () => {
  expect(refusalOf(ended('fork', EAGAIN, { reason: 'kill' }))).toBeUndefined()
  expect(refusalOf(ended('fork', EAGAIN, { reason: 'wall_time' }))).toBeUndefined()
  expect(refusalOf(ended('init', EAGAIN, { leftovers_alive: 1 }))).toBeUndefined()
  expect(refusalOf(ended('fork', EAGAIN, { ending: { how: 'exited', exit_code: 1 } }))).toBeUndefined()
  expect(refusalOf({ status: 'success', finishedAt: 1 })).toBeUndefined()
})
