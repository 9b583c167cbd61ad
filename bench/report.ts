/** Formats the figures of a run as data and as a table. Pure. */
import type { Machine } from './machine.ts'
import type { Figures, Measure } from './measure.ts'
import { median } from './statistics.ts'

/** The server that the others are compared with. */
export const FLOOR = 'floor'

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
  /** Whether ours, the first of the servers, reached the goal; null without a goal, or a figure to judge. */
  readonly goal_met: boolean | null
  /** By server; absent where a server cannot be measured so. */
  readonly results: Readonly<Record<string, Result>>
}

/** What others used of the machine while one workload was measured in one round. */
export interface RoundNoise {
  readonly workload: string
  /** Shares of the CPU time of all cores, 0 to 1, during the measurement that had most of it. */
  readonly steal: number
  readonly foreign: number
  /** Times that the round was repeated because of it. */
  readonly repeats: number
  /** The quietest repeat was disturbed, too. */
  readonly disturbed: boolean
}

export interface Report {
  readonly suite: string
  readonly started_at: string
  readonly duration_ms: number
  /** At most; a workload for which time was short has fewer samples. */
  readonly rounds: number
  readonly quick: boolean
  readonly machine: Machine
  /** Ours first. */
  readonly servers: readonly { readonly name: string; readonly started_as: string }[]
  readonly noise: readonly RoundNoise[]
  readonly measures: readonly MeasureReport[]
}

/** Each server's figures in one workload, a set for each round; ours first. */
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
  const [ours] = rounds.keys()
  return { workload, ...measure, goal_met: isMet(measure, results[ours ?? '']), results }
}

function isMet({ goal, better }: Measure, ours: Result | undefined): boolean | null {
  if (goal === undefined || ours === undefined) return null
  const reached = 'figure' in goal ? ours.median : ours.ratio_to_floor
  if (reached === null) return null
  const wanted = 'figure' in goal ? goal.figure : goal.timesFloor
  return better === 'higher' ? reached >= wanted : reached <= wanted
}

export function toMarkdown({ suite, started_at, machine, measures, quick, servers, noise }: Report): string {
  const names = servers.map(({ name }) => name)
  const hasGoals = measures.some(({ goal }) => goal !== undefined)
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const lines = [
    `# Bench of ${suite}, ${started_at}`,
    '',
    machineText(machine),
    '',
    `Medians of ${roundsText(measures)}, servers taking turns; in brackets the ratio to the floor of the same round. ` +
      '↑ higher is better, ↓ lower is better. The load generator shares these cores with the server.' +
      (quick ? ' **A quick run: the sizes are too small for the figures to mean much.**' : ''),
    '',
    noiseText(noise),
    '',
    row(['measure', 'unit', ...names, ...(hasGoals ? ['goal'] : [])]),
    row(['---', '---', ...names.map(() => '---:'), ...(hasGoals ? ['---'] : [])]),
    ...measures.map((measure) => {
      const arrow = measure.better === undefined ? '' : measure.better === 'higher' ? ' ↑' : ' ↓'
      const cells = names.map((name) => cell(measure.results[name], name))
      return row([`${measure.label}${arrow}`, measure.unit, ...cells, ...(hasGoals ? [goalText(measure)] : [])])
    }),
    '',
    ...servers.map(({ name, started_as }) => `- ${name}: \`${started_as}\``),
    '',
  ]
  return lines.join('\n')
}

/** `3 rounds`, or `1 to 3 rounds` where there was no time for all of every workload. */
function roundsText(measures: readonly MeasureReport[]): string {
  const counts = measures.flatMap(({ results }) => Object.values(results).map(({ samples }) => samples.length))
  const least = Math.min(...counts)
  const most = Math.max(...counts)
  const rounds = most === 1 ? '1 round' : `${most} rounds`
  return least === most ? rounds : `${least} to ${rounds}, as there was time`
}

export const machineText = (machine: Machine): string =>
  `${machine.cores} cores (${machine.cpu}), ${(machine.memory_bytes / 2 ** 30).toFixed(1)} GiB of memory, ` +
  `kernel ${machine.kernel}, Bun ${machine.bun}, commit ${machine.commit}; data on ${machine.file_system} ` +
  `(${machine.disk}), where 1 KiB and fdatasync take ${machine.fdatasync_ms.toFixed(2)} ms and a new file ` +
  `${Math.round(machine.new_file_us)} µs. Load before the run: ${machine.load_before.toFixed(1)}.`

/** How noisy the machine was, and which workloads that concerns. */
export function noiseText(noise: readonly RoundNoise[]): string {
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`
  const spread = (shares: readonly number[]) => `${percent(median(shares))} (at most ${percent(Math.max(...shares))})`
  const repeats = noise.reduce((sum, { repeats }) => sum + repeats, 0)
  const disturbed = [...new Set(noise.filter(({ disturbed }) => disturbed).map(({ workload }) => workload))]
  return (
    `Other guests took ${spread(noise.map(({ steal }) => steal))} of the cores, ` +
    `other processes ${spread(noise.map(({ foreign }) => foreign))}. ` +
    `Disturbed rounds repeated: ${repeats}. ` +
    (disturbed.length === 0 ? 'None stayed disturbed.' : `**Still disturbed: ${disturbed.join(', ')}.**`)
  )
}

function cell(result: Result | undefined, name: string): string {
  if (result === undefined) return '–'
  const value = readable(result.median)
  return result.ratio_to_floor === null || name === FLOOR ? value : `${value} (×${readable(result.ratio_to_floor)})`
}

export function goalText({ goal, goal_met, better, unit }: Measure & Pick<MeasureReport, 'goal_met'>): string {
  if (goal === undefined) return ''
  const side = better === 'higher' ? '≥' : '≤'
  const wanted = 'figure' in goal ? `${goal.figure}${unit === 'ratio' ? '' : ` ${unit}`}` : `×${goal.timesFloor}`
  return `${side} ${wanted}${goal_met === null ? '' : goal_met ? ', met' : ', **missed**'}`
}

/** Three digits, or all of them where there are more before the point. */
export const readable = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : Number(value.toPrecision(value >= 10 ? 3 : 2)).toString()
