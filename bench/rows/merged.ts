/** Puts the runs of a section together: a row of medians and ranges for each measure. Pure. */
import type { Measure } from '../measure.ts'
import { FLOOR, type MeasureReport, type Report } from '../report.ts'
import { median } from '../statistics.ts'

/** Of the runs; each run counts with the median of its rounds. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export interface Row extends Measure {
  readonly ours: Spread | null
  readonly floor: Spread | null
  /** Ours to the floor's, of each run. */
  readonly ratio: Spread | null
  readonly peers: readonly { readonly name: string; readonly spread: Spread }[]
  /** Null without a goal or a figure to judge. */
  readonly goal_met: boolean | null
  /** Others disturbed so many of its rounds that the medians are in doubt: half of them, or more. */
  readonly disturbed: boolean
}

export interface SectionRows {
  readonly title: string
  /** Empty if the section failed. */
  readonly rows: readonly Row[]
  /** Peers that are not here, with what they need. */
  readonly absent: readonly string[]
}

export const spreadOf = (values: readonly number[]): Spread | null =>
  values.length === 0 ? null : { median: median(values), min: Math.min(...values), max: Math.max(...values) }

/** `runs` has one report of the same suite for each run; `peers` are those of the section. */
export function sectionRows(
  title: string,
  runs: readonly Report[],
  peers: Readonly<Record<string, string>>,
): SectionRows {
  const [first] = runs
  if (first === undefined) return { title, rows: [], absent: [] }
  const names = first.servers.map(({ name }) => name)
  const absent = Object.entries(peers).filter(([name]) => !names.includes(name))
  return {
    title,
    rows: first.measures.map((measure) => rowOf(measure, names, runs)),
    absent: absent.map(([name, need]) => `${name} (${need})`),
  }
}

function rowOf({ workload, key }: MeasureReport, names: readonly string[], runs: readonly Report[]): Row {
  const measures = runs.map((run) => run.measures.find((measure) => measure.key === key)!)
  const { label, unit, better, goal } = measures[0]!
  const results = (name: string) => measures.flatMap((measure) => measure.results[name] ?? [])
  const spread = (name: string) => spreadOf(results(name).map((result) => result.median))
  const [ours = ''] = names
  const rounds = runs.flatMap((run) => run.noise.filter((round) => round.workload === workload))
  const measure: Measure = { key, label, unit, ...(better && { better }), ...(goal && { goal }) }
  const row = {
    ours: spread(ours),
    floor: spread(FLOOR),
    ratio: spreadOf(results(ours).flatMap(({ ratio_to_floor }) => ratio_to_floor ?? [])),
  }
  return {
    ...measure,
    ...row,
    peers: names.flatMap((name) => {
      const figure = name === ours || name === FLOOR ? null : spread(name)
      return figure === null ? [] : [{ name, spread: figure }]
    }),
    goal_met: isMet(measure, row),
    disturbed: rounds.filter(({ disturbed }) => disturbed).length * 2 >= rounds.length,
  }
}

function isMet({ goal, better }: Measure, { ours, ratio }: Pick<Row, 'ours' | 'ratio'>): boolean | null {
  if (goal === undefined) return null
  const reached = 'figure' in goal ? ours?.median : ratio?.median
  if (reached === undefined) return null
  const wanted = 'figure' in goal ? goal.figure : goal.timesFloor
  return better === 'higher' ? reached >= wanted : reached <= wanted
}
