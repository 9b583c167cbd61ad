/**
 * The bench: compares our services with a floor and with other servers that speak their API. Flags, suites, output.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../shared/contract/errors.ts'
import { describeSettings, readCommandLine } from '../shared/settings/flags.ts'
import { agent } from './agent/suite.ts'
import { both } from './both/suite.ts'
import { type BenchConfig, benchSettings } from './config.ts'
import { control } from './control/suite.ts'
import { database } from './database/suite.ts'
import { Generator } from './generator.ts'
import { Lifetime } from './lifetime.ts'
import { describeMachine } from './machine.ts'
import { adoptOrphans } from './noise.ts'
import { toMarkdown } from './report.ts'
import { measureRows, ROW_WORKLOADS } from './rows/run.ts'
import { runtime } from './runtime/suite.ts'
import { sandbox } from './sandbox/suite.ts'
import type { Setting, Suite } from './suite.ts'
import { watching } from './watching/suite.ts'

const SUITES: readonly Suite[] = [control, database, watching, runtime, sandbox, both, agent]
const SUITE_NAMES = SUITES.map(({ name }) => name).join(', ')

/** What is measured without a name: all that a user waits for, in a few minutes. */
const REPORT = 'report'

const RESULTS = join(import.meta.dir, 'results')

process.exit(await main())

async function main(): Promise<number> {
  try {
    const { values, positionals, asked } = readCommandLine(process.argv.slice(2), process.env, benchSettings)
    if (asked !== undefined) console.log(help())
    else if (isReport(positionals)) await report(values)
    else await bench(chosenSuites(positionals, values), values)
    return Number(process.exitCode ?? 0)
  } catch (error) {
    console.error(`bench: ${error instanceof UsageError ? error.message : ((error as Error).stack ?? error)}`)
    return error instanceof UsageError ? 2 : 1
  }
}

/** The report is no suite beside others: it has rows of its own, and takes its time. */
function isReport(names: readonly string[]): boolean {
  if (names.length > 0 && !names.includes(REPORT)) return false
  if (names.length > 1) throw new UsageError(`the ${REPORT} and suites are measured one after the other: name one`)
  return true
}

async function report(config: BenchConfig): Promise<void> {
  const { only, quick, command, server } = config
  if (command.length + server.length > 0)
    throw new UsageError(`--command and --server: name one suite (${SUITE_NAMES})`)
  checkWorkloads(only, ROW_WORKLOADS)
  const setting = settingOf(config, only.length === 0 ? ROW_WORKLOADS : only)
  const { page, reports, isWhole } = await measureRows(setting, quick ? 1 : (config.runs ?? 1))
  await write(config, `${REPORT}.md`, page)
  await write(config, `${REPORT}.json`, `${JSON.stringify(reports, null, 2)}\n`)
  const isKept = isWhole && !quick && only.length === 0 && config.out === ''
  if (isKept) await Bun.write(join(RESULTS, `${new Date().toISOString().slice(0, 10)}.md`), page)
  console.log(page)
  if (!isWhole) process.exitCode = 1
}

async function bench(suites: readonly ChosenSuite[], config: BenchConfig): Promise<void> {
  const setting = settingOf(config, [])
  for (const { suite, only } of suites) {
    const report = await suite.run({ ...setting, only })
    const markdown = toMarkdown(report)
    await write(config, `${suite.name}.md`, markdown)
    await write(config, `${suite.name}.json`, `${JSON.stringify(report, null, 2)}\n`)
    console.log(markdown)
  }
}

function write({ out }: BenchConfig, name: string, text: string): Promise<number> {
  const dir = out === '' ? join(RESULTS, 'raw') : out
  mkdirSync(dir, { recursive: true })
  return Bun.write(join(dir, name), text)
}

function settingOf(config: BenchConfig, only: readonly string[]): Setting {
  adoptOrphans()
  const lifetime = new Lifetime()
  return { config, lifetime, machine: describeMachine(lifetime.dir), tools: toolsOf(lifetime), only }
}

function toolsOf(lifetime: Lifetime): Setting['tools'] {
  const run = crypto.randomUUID().slice(0, 8)
  let prefixes = 0
  return {
    load: new Generator(lifetime),
    prober: new Generator(lifetime),
    freshPrefix: () => `b${run}-${prefixes++}`,
  }
}

interface ChosenSuite {
  readonly suite: Suite
  /** Names of the chosen workloads; never empty. */
  readonly only: readonly string[]
}

function chosenSuites(names: readonly string[], { only, command, server }: BenchConfig): readonly ChosenSuite[] {
  const unknownSuite = names.find((name) => SUITES.every((suite) => suite.name !== name))
  if (unknownSuite !== undefined)
    throw new UsageError(`unknown suite "${unknownSuite}" (there are: ${REPORT}, ${SUITE_NAMES})`)
  const suites = SUITES.filter(({ name }) => names.includes(name))
  checkWorkloads(only, [...new Set(suites.flatMap((suite) => suite.workloads))])
  const chosen = suites
    .map((suite) => ({ suite, only: suite.workloads.filter((name) => only.length === 0 || only.includes(name)) }))
    .filter((choice) => choice.only.length > 0)
  if (chosen.length > 1 && command.length + server.length > 0) {
    throw new UsageError(`--command and --server need to know the API: name one suite (${SUITE_NAMES})`)
  }
  const closed = chosen.find(({ suite }) => suite.isClosed)
  if (closed !== undefined && command.length + server.length > 0) {
    throw new UsageError(`the suite ${closed.suite.name} compares nothing with other servers (--command, --server)`)
  }
  return chosen
}

function checkWorkloads(only: readonly string[], workloads: readonly string[]): void {
  const unknown = only.find((name) => !workloads.includes(name))
  if (unknown !== undefined) throw new UsageError(`unknown workload "${unknown}" (there are: ${workloads.join(', ')})`)
}

function help(): string {
  return `Compares the services with floors: servers that do only the minimum of the same API (see bench/README.md).

Usage: bun run bench [report] [flags]      all rows of the report, in at most seven minutes a run
       bun run bench suite... [flags]     suites, each of which has more rows of one part

Flags:
${describeSettings(benchSettings)}
  --help
      Show this text.

Workloads of the report: ${ROW_WORKLOADS.join(', ')}

Suites and their workloads:
${SUITES.map(({ name, workloads }) => `  ${name}: ${workloads.join(', ')}`).join('\n')}`
}
