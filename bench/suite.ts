/**
 * A suite: servers of one API, their workloads, and the rounds.
 *
 * Each round applies every workload to every server. The servers take turns within a workload and change their order
 * from round to round, so that a machine that becomes slower or busier affects all of them alike. A turn of all servers
 * that others disturbed (noise.ts) is repeated a few times, and the quietest counts.
 */
import { messageOf, UsageError } from '../shared/contract/errors.ts'
import type { BenchConfig } from './config.ts'
import { settleDisk } from './disk.ts'
import type { Generator } from './generator.ts'
import type { Lifetime } from './lifetime.ts'
import type { Machine } from './machine.ts'
import type { Figures, Measure } from './measure.ts'
import { cpuTimes, isDisturbed, NO_NOISE, type Noise, noiseBetween, total, worse } from './noise.ts'
import { measureReport, type Report, type RoundNoise } from './report.ts'

/** Rounds without `--rounds`, if there is time for them. */
export const DEFAULT_ROUNDS = 5

/** Maximum repeats of a disturbed turn. */
const MAX_REPEATS = 2

/** Time for all repeats, as a share of that of all rounds. On a busy machine every turn is disturbed. */
const REPEATS_SHARE = 0.2

/** Something that can be put to work: a server, or a loop that shows what the machine can do at most. */
export interface Target {
  readonly name: string
  /** How it is started, for the report. */
  readonly description: string
}

export interface Tools<S> {
  readonly sizes: S
  readonly load: Generator
  /** A second process, for work beside the load. */
  readonly prober: Generator
  /** A start for task ids that was never used before. */
  readonly freshPrefix: () => string
}

/** A piece of work that every target is put to, and the figures that come out of it. */
export interface Workload<T extends Target, S> {
  /** For `--only`. */
  readonly name: string
  readonly measures: (sizes: S) => readonly Measure[]
  /** One round on one target: a figure for each of the measures. */
  readonly run: (target: T, tools: Tools<S>) => Promise<Figures>
}

/** Where a suite runs, and what with. */
export interface Setting {
  readonly config: BenchConfig
  readonly lifetime: Lifetime
  readonly machine: Machine
  readonly tools: Omit<Tools<unknown>, 'sizes'>
  /** Of the chosen workloads. */
  readonly only: readonly string[]
}

export interface Suite {
  readonly name: string
  readonly workloads: readonly string[]
  /** It takes no servers of `--server` and `--command`. */
  readonly isClosed: boolean
  readonly run: (setting: Setting) => Promise<Report>
}

export interface SuiteParts<T extends Target, S> {
  readonly name: string
  /** How much of everything: for figures that mean something, and for a smoke run. */
  readonly full: S
  readonly quick: S
  /** Milliseconds for all rounds with their repeats. After the first round, no workload begins that would end later. */
  readonly roundsMs: number
  /** Without `--rounds`. Default: `DEFAULT_ROUNDS`. */
  readonly rounds?: number
  /** Makes the targets, ours first. */
  readonly prepare: (config: BenchConfig, lifetime: Lifetime) => Promise<readonly T[]>
  readonly workloads: readonly Workload<T, S>[]
  readonly isClosed?: boolean
}

export const suiteOf = <T extends Target, S>(parts: SuiteParts<T, S>): Suite => ({
  name: parts.name,
  workloads: parts.workloads.map(({ name }) => name),
  isClosed: parts.isClosed ?? false,
  run: (setting) => run(parts, setting),
})

async function run<T extends Target, S>(parts: SuiteParts<T, S>, setting: Setting): Promise<Report> {
  const { config, lifetime, machine, only } = setting
  const startedAt = new Date()
  const start = performance.now()
  const targets = await parts.prepare(config, lifetime)
  const names = targets.map(({ name }) => name)
  if (new Set(names).size < names.length) throw new UsageError(`two servers of one name among: ${names.join(', ')}`)
  const tools: Tools<S> = { ...setting.tools, sizes: config.quick ? parts.quick : parts.full }
  const workloads = parts.workloads.filter(({ name }) => only.includes(name))

  const turns = new Map(workloads.map((workload) => [workload, [] as Turn[]]))
  const rounds = config.quick ? 1 : (config.rounds ?? parts.rounds ?? DEFAULT_ROUNDS)
  const until = config.rounds === undefined ? start + parts.roundsMs : Number.POSITIVE_INFINITY
  const lastMs = new Map<Workload<T, S>, number>()
  let repeatsLeftMs = config.quick ? 0 : parts.roundsMs * REPEATS_SHARE
  for (let round = 0; round < rounds; round++) {
    const inTurn = round % 2 === 0 ? targets : targets.toReversed()
    for (const workload of workloads) {
      const workloadStart = performance.now()
      if (workloadStart + (lastMs.get(workload) ?? 0) > until - repeatsLeftMs && round > 0) continue
      console.error(`${parts.name}, round ${round + 1} of ${rounds}: ${workload.name}`)
      let best = await turn(workload, inTurn, tools, lifetime)
      const turnMs = performance.now() - workloadStart
      lastMs.set(workload, turnMs)
      for (let n = 1; n <= MAX_REPEATS && isDisturbed(best.noise) && repeatsLeftMs >= turnMs; n++) {
        repeatsLeftMs -= turnMs
        const again = await turn(workload, inTurn, tools, lifetime)
        best = { ...(total(again.noise) < total(best.noise) ? again : best), repeats: n }
      }
      turns.get(workload)!.push(best)
    }
  }

  return {
    suite: parts.name,
    started_at: startedAt.toISOString(),
    duration_ms: Date.now() - startedAt.getTime(),
    rounds,
    quick: config.quick,
    machine,
    servers: targets.map(({ name, description }) => ({ name, started_as: description })),
    noise: workloads.flatMap((workload) => turns.get(workload)!.map((turn) => roundNoise(workload.name, turn))),
    measures: workloads.flatMap((workload) => {
      const figures = new Map(names.map((name) => [name, turns.get(workload)!.map((turn) => turn.figures.get(name)!)]))
      return workload.measures(tools.sizes).map((measure) => measureReport(workload.name, measure, figures))
    }),
  }
}

/** One workload on every target. */
interface Turn {
  readonly figures: ReadonlyMap<string, Figures>
  /** Of the noisiest measurement. */
  readonly noise: Noise
  /** Disturbed turns that were done again before this or after it. */
  readonly repeats: number
}

const roundNoise = (workload: string, { noise, repeats }: Turn): RoundNoise => ({
  ...{ workload, ...noise, repeats },
  disturbed: isDisturbed(noise),
})

async function turn<T extends Target, S>(
  workload: Workload<T, S>,
  targets: readonly T[],
  tools: Tools<S>,
  lifetime: Lifetime,
): Promise<Turn> {
  const figures = new Map<string, Figures>()
  let noise = NO_NOISE
  for (const target of targets) {
    settleDisk(lifetime.dir)
    const before = cpuTimes()
    figures.set(target.name, await measured(workload, target, tools))
    noise = worse(noise, noiseBetween(before, cpuTimes()))
  }
  return { figures, noise, repeats: 0 }
}

async function measured<T extends Target, S>(workload: Workload<T, S>, target: T, tools: Tools<S>): Promise<Figures> {
  try {
    return await workload.run(target, tools)
  } catch (error) {
    throw new Error(`${workload.name} on ${target.name}: ${messageOf(error)}`, { cause: error })
  }
}
