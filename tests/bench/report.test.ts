/** The report of a bench: medians, ratios round by round, goals, and the table that people read. */
import { describe, expect, test } from 'bun:test'
import type { Figures, Measure } from '../../bench/measure.ts'
import { measureReport, type Report, type Rounds, toMarkdown } from '../../bench/report.ts'

/** Figures of servers, one a round, of the measure `key`. */
const rounds = (samples: Readonly<Record<string, readonly (number | null)[]>>): Rounds =>
  new Map(Object.entries(samples).map(([name, all]) => [name, all.map((figure): Figures => ({ key: figure }))]))

const TIME: Measure = { key: 'key', label: 'time', unit: 'ms', better: 'lower' }
const RATE: Measure = { key: 'key', label: 'rate', unit: '/s', better: 'higher' }

test('figures are medians, and ratios are those of the same round', () => {
  const { results } = measureReport(
    'work',
    TIME,
    rounds({ ours: [2, 30, 8], floor: [1, 10, 2], other: [null, 5, null] }),
  )
  expect(results.ours).toEqual({ median: 8, min: 2, max: 30, ratio_to_floor: 3, samples: [2, 30, 8] })
  expect(results.floor).toMatchObject({ median: 2, ratio_to_floor: 1 })
  expect(results.other).toEqual({ median: 5, min: 5, max: 5, ratio_to_floor: 0.5, samples: [5] })
})

test('a server that cannot be measured so has no result, and a figure that judges nobody no ratio', () => {
  const { results } = measureReport(
    'work',
    { key: 'key', label: 'x', unit: 'MB' },
    rounds({ ours: [1], floor: [null] }),
  )
  expect(Object.keys(results)).toEqual(['ours'])
  expect(results.ours!.ratio_to_floor).toBeNull()
})

describe('a goal', () => {
  test.each([
    [{ ...TIME, goal: { timesFloor: 1.2 } }, { ours: [12], floor: [10] }, true],
    [{ ...TIME, goal: { timesFloor: 1.2 } }, { ours: [13], floor: [10] }, false],
    [{ ...RATE, goal: { timesFloor: 0.9 } }, { ours: [9], floor: [10] }, true],
    [{ ...RATE, goal: { timesFloor: 0.9 } }, { ours: [8], floor: [10] }, false],
    [{ ...TIME, goal: { figure: 0.4 } }, { ours: [0.4], floor: [0.1] }, true],
    [{ ...TIME, goal: { figure: 0.4 } }, { ours: [0.5], floor: [1] }, false],
    [{ ...RATE, goal: { figure: 0.9 } }, { ours: [1] }, true],
    // Nobody to compare with, or nothing to compare.
    [{ ...TIME, goal: { timesFloor: 1.2 } }, { ours: [12], floor: [null] }, null],
    [{ ...TIME, goal: { figure: 0.4 } }, { ours: [null], floor: [0.1] }, null],
    [TIME, { ours: [1], floor: [1] }, null],
  ] as const)('%j with %j: %p', (measure, samples, met) => {
    expect(measureReport('work', measure, rounds(samples)).goal_met).toBe(met)
  })

  test('of ours, not of another server', () => {
    const samples = { ours: [5], floor: [10], other: [100] }
    expect(measureReport('work', { ...TIME, goal: { figure: 6 } }, rounds(samples)).goal_met).toBe(true)
  })
})

describe('the table', () => {
  const report = (measures: Report['measures']): Report => ({
    suite: 'work',
    started_at: '2026-01-02T03:04:05.678Z',
    duration_ms: 1,
    rounds: 3,
    quick: false,
    machine: {
      cores: 2,
      cpu: 'CPU',
      memory_bytes: 2 ** 34,
      kernel: '6.1',
      bun: '1.4.4',
      file_system: 'ext4',
      disk: 'virtual disk',
      commit: 'abc',
      fdatasync_ms: 0.123,
      new_file_us: 7.6,
      load_before: 0.5,
    },
    servers: [
      { name: 'ours', started_as: 'ours --port {port}' },
      { name: 'floor', started_as: 'floor' },
    ],
    noise: [{ workload: 'a', steal: 0, foreign: 0, repeats: 0, disturbed: false }],
    measures,
  })

  test('has figures, ratios, goals, and a dash where there is nothing', () => {
    const text = toMarkdown(
      report([
        measureReport('a', { ...TIME, goal: { timesFloor: 1.2 } }, rounds({ ours: [3, 3], floor: [2, 2] })),
        measureReport('a', { ...RATE, goal: { figure: 1000 } }, rounds({ ours: [1234.5], floor: [null] })),
        measureReport('a', { key: 'key', label: 'x', unit: 'MB' }, rounds({ ours: [0.0351], floor: [12.34] })),
      ]),
    )
    expect(text.split('\n').filter((line) => line.startsWith('|'))).toEqual([
      '| measure | unit | ours | floor | goal |',
      '| --- | --- | ---: | ---: | --- |',
      '| time ↓ | ms | 3 (×1.5) | 2 | ≤ ×1.2, **missed** |',
      '| rate ↑ | /s | 1,235 | – | ≥ 1000 /s, met |',
      '| x | MB | 0.035 | 12.3 |  |',
    ])
    expect(text).toContain('Medians of 1 to 2 rounds, as there was time, ')
    expect(text).toContain('1 KiB and fdatasync take 0.12 ms and a new file 8 µs')
  })

  test('has no column of goals where there are none', () => {
    const text = toMarkdown(report([measureReport('a', TIME, rounds({ ours: [3], floor: [2] }))]))
    expect(text).toContain('| measure | unit | ours | floor |\n')
    expect(text).toContain('Medians of 1 round, ')
  })
})
