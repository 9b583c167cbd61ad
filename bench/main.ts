/**
 * The bench: how fast control is, beside the floor and whatever else speaks its API.
 *
 * Each round puts every server to every workload, the servers taking turns within a workload and changing their order
 * from round to round, so that a machine that gets slower or busier does so for all of them alike.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../shared/errors.ts'
import { describeSettings, readCommandLine } from '../shared/flags.ts'
import { type BenchConfig, benchSettings, FULL, QUICK } from './config.ts'
import { Generator } from './generator.ts'
import { Lifetime } from './lifetime.ts'
import { describeMachine } from './machine.ts'
import { measureReport, type Report, toMarkdown } from './report.ts'
import { prepareTargets } from './servers.ts'
import { health } from './workloads/health.ts'
import { large } from './workloads/large.ts'
import { small } from './workloads/small.ts'
import { stall } from './workloads/stall.ts'
import { start } from './workloads/start.ts'
import { submit } from './workloads/submit.ts'
import type { Figures, Tools, Workload } from './workloads/workload.ts'

const WORKLOADS: readonly Workload[] = [submit, health, small, large, stall, start]

process.exit(await main())

async function main(): Promise<number> {
  try {
    const { values, positionals, asked } = readCommandLine(process.argv.slice(2), process.env, benchSettings)
    if (asked !== undefined) console.log(help())
    else if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}" (see --help)`)
    else await bench(values)
    return 0
  } catch (error) {
    console.error(`bench: ${error instanceof UsageError ? error.message : ((error as Error).stack ?? error)}`)
    return error instanceof UsageError ? 2 : 1
  }
}

async function bench(config: BenchConfig): Promise<void> {
  const workloads = chosenWorkloads(config.only)
  const outDir = config.out === '' ? join(import.meta.dir, 'results') : config.out
  mkdirSync(outDir, { recursive: true })
  const startedAt = new Date()
  const rounds = config.quick ? 1 : config.rounds
  const lifetime = new Lifetime()
  const machine = describeMachine(lifetime.dir)
  const targets = await prepareTargets(config, lifetime)
  const names = targets.map(({ name }) => name)
  if (new Set(names).size < names.length) throw new UsageError(`two servers of one name among: ${names.join(', ')}`)
  const tools = toolsOf(config, lifetime)

  const figures = new Map(
    workloads.map((workload) => [workload, new Map(names.map((name) => [name, [] as Figures[]]))]),
  )
  for (let round = 0; round < rounds; round++) {
    const inTurn = round % 2 === 0 ? targets : targets.toReversed()
    for (const workload of workloads) {
      console.error(`round ${round + 1} of ${rounds}: ${workload.name}`)
      for (const target of inTurn) {
        try {
          figures
            .get(workload)!
            .get(target.name)!
            .push(await workload.run(target, tools))
        } catch (error) {
          throw new Error(`${workload.name} on ${target.name}: ${messageOf(error)}`, { cause: error })
        }
      }
    }
  }

  const report: Report = {
    started_at: startedAt.toISOString(),
    duration_ms: Date.now() - startedAt.getTime(),
    rounds,
    quick: config.quick,
    machine,
    servers: targets.map(({ name, description }) => ({ name, started_as: description })),
    measures: workloads.flatMap((workload) =>
      workload.measures(tools.sizes).map((measure) => measureReport(workload.name, measure, figures.get(workload)!)),
    ),
  }
  const markdown = toMarkdown(report, targets)
  await Bun.write(join(outDir, 'latest.md'), markdown)
  await Bun.write(join(outDir, 'latest.json'), `${JSON.stringify(report, null, 2)}\n`)
  console.log(markdown)
}

function toolsOf(config: BenchConfig, lifetime: Lifetime): Tools {
  const run = crypto.randomUUID().slice(0, 8)
  let prefixes = 0
  return {
    sizes: config.quick ? QUICK : FULL,
    load: new Generator(lifetime),
    prober: new Generator(lifetime),
    freshPrefix: () => `b${run}-${prefixes++}`,
  }
}

function chosenWorkloads(only: readonly string[]): readonly Workload[] {
  const names = WORKLOADS.map(({ name }) => name)
  const unknown = only.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new UsageError(`unknown workload "${unknown}" (there are: ${names.join(', ')})`)
  return only.length === 0 ? WORKLOADS : WORKLOADS.filter(({ name }) => only.includes(name))
}

function help(): string {
  return `Compares control with the floor, the least that a server of its API has to do (see bench/README.md).

Usage: bun run bench [flags]

Flags:
${describeSettings(benchSettings)}
  --help
      Show this text.

Workloads: ${WORKLOADS.map(({ name }) => name).join(', ')}`
}
