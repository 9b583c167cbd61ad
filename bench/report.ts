/** The figures of a run, as data and as a table. Pure. */
import type { Machine } from './machine.ts'
import { FLOOR, type Target } from './servers.ts'
import { median } from './statistics.ts'
import type { Figures, Measure } from './workloads/workload.ts'

/** Figures of one server in one measure. */
export interface Result {
  readonly median: number
  readonly min: number
  readonly max: number
  /** The median of the ratios of the rounds, figure by floor's figure; null without a floor or a direction. */
  readonly ratio_to_floor: number | null
  /** One for each round. */
  readonly samples: readonly number[]
}

export interface MeasureReport extends Measure {
  readonly workload: string
  /** By server; absent where a server cannot be measured so. */
  readonly results: Readonly<Record<string, Result>>
}

export interface Report {
  readonly started_at: string
  readonly duration_ms: number
  readonly rounds: number
  readonly quick: boolean
  readonly machine: Machine
  readonly servers: readonly { readonly name: string; readonly started_as: string }[]
  readonly measures: readonly MeasureReport[]
}

/** Each server's figures in one workload, a set for each round. */
export type Rounds = ReadonlyMap<string, readonly Figures[]>

export function measureReport(workload: string, measure: Measure, rounds: Rounds): MeasureReport {
  const samplesOf = (name: string) => (rounds.get(name) ?? []).map((figures) => figures[measure.key] ?? null)
  const floor = samplesOf(FLOOR)
  const results: Record<string, Result> = {}
  for (const name of rounds.keys()) {
    const all = samplesOf(name)
    const samples = all.filter((sample) => sample !== null)
    if (samples.length === 0) continue
    const ratios = all.flatMap((sample, round) => (sample !== null && floor[round] ? [sample / floor[round]] : []))
    results[name] = {
      median: median(samples),
      min: Math.min(...samples),
      max: Math.max(...samples),
      ratio_to_floor: measure.better === undefined || ratios.length === 0 ? null : median(ratios),
      samples,
    }
  }
  return { workload, ...measure, results }
}

export function toMarkdown(report: Report, targets: readonly Target[]): string {
  const { machine, measures } = report
  const names = targets.map(({ name }) => name)
  const lines = [
    `# Bench of ${report.started_at}`,
    '',
    `${machine.cores} cores (${machine.cpu}), ${(machine.memory_bytes / 2 ** 30).toFixed(1)} GiB of memory, ` +
      `kernel ${machine.kernel}, Bun ${machine.bun}; data on ${machine.file_system}, where 1 KiB and fdatasync take ` +
      `${machine.fdatasync_ms.toFixed(2)} ms. Load before the run: ${machine.load_before.toFixed(1)}.`,
    '',
    `Medians of ${report.rounds === 1 ? '1 round' : `${report.rounds} rounds`}, servers taking turns; in brackets the ratio to the floor of the same round. ` +
      '↑ higher is better, ↓ lower is better. The load generator shares these cores with the server.' +
      (report.quick ? ' **A quick run: the sizes are too small for the figures to mean much.**' : ''),
    '',
    `| measure | unit | ${names.join(' | ')} |`,
    `| --- | --- | ${names.map(() => '---:').join(' | ')} |`,
    ...measures.map((measure) => {
      const arrow = measure.better === undefined ? '' : measure.better === 'higher' ? ' ↑' : ' ↓'
      const cells = names.map((name) => cell(measure.results[name], name))
      return `| ${measure.label}${arrow} | ${measure.unit} | ${cells.join(' | ')} |`
    }),
    '',
    ...targets.map(({ name, description }) => `- ${name}: \`${description}\``),
    '',
  ]
  return lines.join('\n')
}

function cell(result: Result | undefined, name: string): string {
  if (result === undefined) return '–'
  const value = readable(result.median)
  return result.ratio_to_floor === null || name === FLOOR ? value : `${value} (×${readable(result.ratio_to_floor)})`
}

/** Three digits, or all of them where there are more before the point. */
const readable = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : Number(value.toPrecision(value >= 10 ? 3 : 2)).toString()
