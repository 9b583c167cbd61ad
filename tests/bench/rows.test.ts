/** The report of all rows: runs put together, goals judged, bars drawn, and what the README quotes of it. */
import { describe, expect, spyOn, test } from 'bun:test'
import type { Machine } from '../../bench/machine.ts'
import type { Figures, Measure } from '../../bench/measure.ts'
import { measureReport, type Report } from '../../bench/report.ts'
import { type SectionRows, sectionRows, spreadOf } from '../../bench/rows/merged.ts'
import { type ReportPage, reportPage, rowText } from '../../bench/rows/page.ts'
import { besidePeers, type Peer } from '../../bench/rows/section.ts'
import type { Target, Tools } from '../../bench/suite.ts'
import { sectionOf } from '../../scripts/settings-list.ts'

const TIME: Measure = { key: 'time', label: 'work', unit: 'ms', better: 'lower', goal: { timesFloor: 1.5 } }
const RATE: Measure = { key: 'rate', label: 'tasks', unit: '/s', better: 'higher', goal: { timesFloor: 0.8 } }

const MACHINE: Machine = {
  ...{ cores: 2, cpu: 'CPU', memory_bytes: 2 ** 34, kernel: '6.1', bun: '1.4.4', file_system: 'ext4' },
  ...{ disk: 'virtual disk', commit: 'abc', fdatasync_ms: 0.1, new_file_us: 8, load_before: 0.1 },
}

/** A run of a suite with one workload; `rounds` are the samples of each server. */
function run(
  measure: Measure,
  rounds: Readonly<Record<string, readonly (number | null)[]>>,
  disturbed: readonly boolean[] = [],
): Report {
  const names = Object.keys(rounds)
  const figures = new Map(names.map((name) => [name, rounds[name]!.map((value) => ({ [measure.key]: value }))]))
  return {
    ...{ suite: 'suite', started_at: '', duration_ms: 1, rounds: 3, quick: false, machine: MACHINE },
    servers: names.map((name) => ({ name, started_as: '' })),
    noise: disturbed.map((isSo) => ({ workload: 'w', steal: 0, foreign: isSo ? 0.5 : 0, repeats: 0, disturbed: isSo })),
    measures: [measureReport('w', measure, figures)],
  }
}

const CALM = [false, false, false]

describe('runs put together', () => {
  test('a figure is the median of the medians of the runs, with the least and the most of them', () => {
    const runs = [
      run(TIME, { taskmill: [3, 30, 4], floor: [2, 2, 2], make: [9, 9, 9] }, CALM),
      run(TIME, { taskmill: [6, 6, 6], floor: [3, 3, 3], make: [7, 7, 7] }, CALM),
      run(TIME, { taskmill: [2, 2, 2], floor: [2, 2, 2], make: [8, 8, 8] }, CALM),
    ]
    expect(sectionRows('Section', runs, { make: 'GNU make', tsp: 'task-spooler' })).toEqual({
      title: 'Section',
      rows: [
        {
          ...TIME,
          ours: { median: 4, min: 2, max: 6 },
          floor: { median: 2, min: 2, max: 3 },
          ratio: { median: 2, min: 1, max: 2 },
          peers: [{ name: 'make', spread: { median: 8, min: 7, max: 9 } }],
          goal_met: false,
          disturbed: false,
        },
      ],
      absent: ['tsp (task-spooler)'],
    })
  })

  test.each([
    [TIME, { taskmill: [15], floor: [10] }, true],
    [TIME, { taskmill: [16], floor: [10] }, false],
    [RATE, { taskmill: [8], floor: [10] }, true],
    [RATE, { taskmill: [7], floor: [10] }, false],
    [{ ...TIME, goal: { figure: 290 } }, { taskmill: [290], floor: [10] }, true],
    [TIME, { taskmill: [15], floor: [null] }, null],
  ] as const)('a goal of %j with %j: %p', (measure, rounds, met) => {
    expect(sectionRows('', [run(measure, rounds, CALM)], {}).rows[0]!.goal_met).toBe(met)
  })

  test('a row is in doubt when half of its rounds were disturbed', () => {
    const samples = { taskmill: [1, 1], floor: [1, 1] }
    const isInDoubt = (...runs: boolean[][]) =>
      sectionRows(
        '',
        runs.map((rounds) => run(TIME, samples, rounds)),
        {},
      ).rows[0]!.disturbed
    expect(isInDoubt([false, false], [true, false])).toBe(false)
    expect(isInDoubt([true, false], [true, false])).toBe(true)
  })

  test('of nothing there is no range', () => {
    expect(spreadOf([])).toBeNull()
  })
})

describe('a peer', () => {
  const tools = {} as Tools<null>
  const workload = besidePeers<Target, null>({ name: 'w', measures: () => [], run: async () => ({ ours: 1 }) })
  const peer = (work: () => Promise<Figures>): Peer<null> => ({ name: 'peer', description: '', work: { w: work } })

  test('does the work in its own way, once in a run', async () => {
    let times = 0
    const counted = peer(async () => ({ ours: 10 + times++ }))
    expect(await workload.run({ name: 'taskmill', description: '' }, tools)).toEqual({ ours: 1 })
    expect(await workload.run(counted, tools)).toEqual({ ours: 10 })
    expect(await workload.run(counted, tools)).toEqual({ ours: 10 })
  })

  test('that fails, or does no such work, has no figures', async () => {
    const silence = spyOn(console, 'error').mockImplementation(() => {})
    expect(
      await workload.run(
        peer(() => Promise.reject(new Error('no'))),
        tools,
      ),
    ).toEqual({})
    expect(silence).toHaveBeenCalledWith('peer could not be measured: no')
    silence.mockRestore()
    const other: Peer<null> = { name: 'other', description: '', work: {} }
    expect(await workload.run(other, tools)).toEqual({})
  })
})

test('bars are as long as their share of the largest figure, and at least one', () => {
  const { rows } = sectionRows('', [run(RATE, { taskmill: [500], floor: [1000], tsp: [1] }, CALM)], {})
  expect(rowText(rows[0]!)).toEqual([
    'tasks, /s, more is better',
    `  taskmill  ${'█'.repeat(16)}${'·'.repeat(16)}  500  ×0.5  goal ≥ ×0.8, missed`,
    `  floor     ${'█'.repeat(32)}  1,000`,
    `  tsp       █${'·'.repeat(31)}  1`,
  ])
})

describe('the page', () => {
  const page = (sections: readonly SectionRows[], runs: number): ReportPage => ({
    ...{ date: '2026-01-02', machine: MACHINE, runs, minutes: 5.44, sections },
    noise: [{ workload: 'w', steal: 0, foreign: 0.01, repeats: 0, disturbed: false }],
  })
  const runs = [run(TIME, { taskmill: [2], floor: [2] }, CALM), run(TIME, { taskmill: [4], floor: [2] }, CALM)]
  const section = sectionRows('Section', runs, { tsp: 'task-spooler' })

  test('tells machine, noise, goals, absent peers, and ranges', () => {
    const text = reportPage(page([section, sectionRows('Other', [], {})], 2), {})
    expect(text).toContain(
      '2 cores (CPU), 16.0 GiB of memory, kernel 6.1, Bun 1.4.4, commit abc; data on ext4 (virtual disk)',
    )
    expect(text).toContain('Medians of 2 runs of 5.4 minutes, in brackets the least and the most of them.')
    expect(text).toContain('**1 of 1 goals met.** Other guests took 0.0 %')
    expect(text).toContain('Not on this machine, so not beside it: tsp (task-spooler).')
    expect(text).toContain('**Could not be measured here: Other.**')
    expect(text).toContain('3 [2–4]  ×1.5 [1–2]  goal ≤ ×1.5, met')
  })

  test('marks a row that stayed disturbed', () => {
    const disturbed = sectionRows('Section', [run(TIME, { taskmill: [2], floor: [2] }, [true])], {})
    const text = reportPage(page([disturbed], 1), { Section: ['time'] })
    expect(text).toContain('~ marks their rows.')
    expect(text).toContain('\n~ work, ms, less is better\n')
    expect(text).toContain('\n| ~ work | 2 ms |')
  })

  test('has a part for the README, with a bar as good as the floor where ours is', () => {
    const text = reportPage(page([section], 2), { Section: ['time'] })
    expect(sectionOf(text, 'quoted').split('\n')).toEqual([
      '| work | taskmill | beside the floor, `██████████` | others |',
      '| --- | ---: | --- | --- |',
      '| work | 3 ms | `███████` ×1.5 |  |',
      '',
      'The report sets a goal for most rows: 1 of 1 goals met.',
    ])
    expect(() => sectionOf('no markers', 'quoted')).toThrow('no section quoted')
  })
})
