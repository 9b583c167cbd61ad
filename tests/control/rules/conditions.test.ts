/** When a task runs, by its rule and how its dependencies ended: the tables of `docs/graphs.md`. */
import { describe, expect, test } from 'bun:test'
import {
  type Decision,
  decide,
  hasRule,
  STANDING_BITS,
  type Standing,
  standingOf,
} from '../../../control/rules/conditions.ts'
import type { RunIf } from '../../../shared/contract/run-if.ts'
import type { TaskStatus } from '../../../shared/contract/task-status.ts'

const bitsOf = (standings: readonly Standing[]) =>
  standings.reduce((bits, standing) => bits | STANDING_BITS[standing], 0)

describe('a task whose dependencies have all ended', () => {
  test.each<[readonly Standing[], ...[success: Decision, failed: Decision, always: Decision]]>([
    // standings of the dependencies, and what becomes of success, failed, always
    [[], 'run', 'neutral', 'run'],
    [['good'], 'run', 'neutral', 'run'],
    [['neutral'], 'neutral', 'neutral', 'run'],
    [['bad'], 'bad', 'run', 'run'],
    [['cancelled'], 'cancelled', 'cancelled', 'run'],
    [['good', 'neutral'], 'run', 'neutral', 'run'],
    [['good', 'bad'], 'bad', 'run', 'run'],
    [['good', 'cancelled'], 'cancelled', 'cancelled', 'run'],
    [['neutral', 'bad'], 'bad', 'run', 'run'],
    [['neutral', 'cancelled'], 'cancelled', 'cancelled', 'run'],
    [['bad', 'cancelled'], 'bad', 'run', 'run'],
    [['good', 'neutral', 'bad', 'cancelled'], 'bad', 'run', 'run'],
  ])('%j: success %s, failed %s, always %s', (standings, success, failed, always) => {
    const bits = bitsOf(standings)
    expect((['success', 'failed', 'always'] as const).map((runIf) => decide(runIf, bits, true))).toEqual([
      success,
      failed,
      always,
    ])
  })
})

describe('a task with a dependency that has not ended', () => {
  test.each<[RunIf, readonly Standing[], Decision]>([
    ['success', [], 'wait'],
    ['success', ['good'], 'wait'],
    ['success', ['neutral'], 'wait'],
    ['success', ['bad'], 'bad'],
    ['success', ['good', 'cancelled'], 'cancelled'],
    ['failed', ['bad'], 'wait'],
    ['failed', ['good'], 'wait'],
    ['always', ['bad', 'cancelled', 'good'], 'wait'],
  ])('%s, after %j: %s', (runIf, standings, decision) => {
    expect(decide(runIf, bitsOf(standings), false)).toBe(decision)
  })
})

describe('an ended task counts', () => {
  const plain = { neverRuns: false, continuesOnError: false, rare: {} }
  test.each<[TaskStatus, object, Standing | undefined]>([
    ['success', {}, 'good'],
    ['success', { continuesOnError: true }, 'good'],
    ['failed', {}, 'bad'],
    ['failed', { continuesOnError: true }, 'good'],
    ['skipped', {}, 'bad'],
    ['skipped', { continuesOnError: true }, 'bad'],
    ['skipped', { rare: { skip_standing: 'neutral' } }, 'neutral'],
    ['skipped', { rare: { skip_standing: 'cancelled' } }, 'cancelled'],
    ['cancelled', {}, 'cancelled'],
    ['cancelled', { continuesOnError: true }, 'cancelled'],
    ['pending', { neverRuns: true }, 'cancelled'],
    ['pending', {}, undefined],
    ['running', {}, undefined],
    ['cancelling', {}, undefined],
  ])('%s %j as %p', (status, more, standing) => {
    expect(standingOf({ ...plain, ...more, status })).toBe(standing!)
  })
})

test('only a task that names a rule has one', () => {
  expect(hasRule({})).toBe(false)
  expect(hasRule({ run_if: 'success' })).toBe(true)
  expect(hasRule({ continue_on_error: false })).toBe(true)
})
