/** The arithmetic of noise: what others used of the machine during a measurement, and what follows from it. */
import { describe, expect, test } from 'bun:test'
import { type CpuTimes, DISTURBED_FROM, isDisturbed, noiseBetween, parseCpuLine, worse } from '../../bench/noise.ts'
import { noiseText, type RoundNoise } from '../../bench/report.ts'

const times = (possibleMs: number, busyMs: number, stealMs: number, ownMs: number): CpuTimes => ({
  ...{ possibleMs, busyMs, stealMs, ownMs, kernelMs: new Map() },
})

test('the line of all cores of /proc/stat gives busy time and steal, in ticks of 10 ms', () => {
  const stat = 'cpu  100 20 30 4000 50 6 7 8 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n'
  expect(parseCpuLine(stat)).toEqual({ busyMs: 1630, stealMs: 80 })
  // Linux before 2.6.11 had no steal.
  expect(parseCpuLine('cpu  100 20 30 4000 50 6 7\n')).toEqual({ busyMs: 1630, stealMs: 0 })
})

describe('noise is', () => {
  test.each([
    ['none on a machine that is ours', times(2_000, 1_200, 0, 1_200), { steal: 0, foreign: 0 }],
    ['foreign where the cores did more than ours', times(2_000, 1_700, 0, 1_200), { steal: 0, foreign: 0.25 }],
    ['steal where the cores were not there', times(2_000, 1_200, 100, 1_200), { steal: 0.05, foreign: 0 }],
    ['none where ticks are behind the clocks of processes', times(2_000, 1_190, 0, 1_200), { steal: 0, foreign: 0 }],
    ['all of it, not more, where a tick is longer than the time', times(20, 40, 0, 0), { steal: 0, foreign: 1 }],
    ['none in no time', times(0, 10, 10, 0), { steal: 0, foreign: 0 }],
  ])('%s', (_name, passed, noise) => {
    const before = times(50_000, 10_000, 300, 7_000)
    const after = times(
      ...([before.possibleMs + passed.possibleMs, before.busyMs + passed.busyMs] as const),
      ...([before.stealMs + passed.stealMs, before.ownMs + passed.ownMs] as const),
    )
    expect(noiseBetween(before, after)).toEqual(noise)
  })
})

test('kernel threads are no noise, whichever of them begin and end meanwhile', () => {
  const before = {
    ...times(0, 0, 0, 0),
    kernelMs: new Map([
      [7, 5_000],
      [8, 100],
    ]),
  }
  const after = {
    ...times(2_000, 1_500, 0, 1_000),
    kernelMs: new Map([
      [8, 300],
      [9, 200],
    ]),
  }
  expect(noiseBetween(before, after)).toEqual({ steal: 0, foreign: 0.05 })
})

test('either kind of noise disturbs, from its threshold', () => {
  expect(isDisturbed({ steal: 0, foreign: 0 })).toBe(false)
  expect(isDisturbed({ steal: DISTURBED_FROM.steal - 0.001, foreign: DISTURBED_FROM.foreign - 0.001 })).toBe(false)
  expect(isDisturbed({ ...DISTURBED_FROM, steal: 0 })).toBe(true)
  expect(isDisturbed({ ...DISTURBED_FROM, foreign: 0 })).toBe(true)
  expect(worse({ steal: 0.1, foreign: 0.2 }, { steal: 0.3, foreign: 0.1 })).toEqual({ steal: 0.3, foreign: 0.2 })
})

test('the report tells how noisy it was, what was repeated, and what stayed disturbed', () => {
  const round = (workload: string, foreign: number, repeats: number): RoundNoise => ({
    ...{ workload, steal: 0.01, foreign, repeats },
    disturbed: foreign > 0.08,
  })
  expect(noiseText([round('submit', 0.01, 0), round('submit', 0.02, 1), round('start', 0.03, 0)])).toBe(
    'Other guests took 1.0 % (at most 1.0 %) of the cores, other processes 2.0 % (at most 3.0 %). ' +
      'Disturbed rounds repeated: 1. None stayed disturbed.',
  )
  expect(noiseText([round('submit', 0.5, 2), round('submit', 0.5, 2), round('start', 0.01, 0)])).toEndWith(
    'Disturbed rounds repeated: 4. **Still disturbed: submit.**',
  )
})
