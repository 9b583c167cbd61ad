/**
 * The bench: compares our services with a floor and with other servers that speak their API. Flags, suites, output.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../shared/errors.ts'
import { describeSettings, readCommandLine } from '../shared/flags.ts'
import { both } from './both/suite.ts'
import { type BenchConfig, benchSettings } from './config.ts'
import { control } from './control/suite.ts'
import { Generator } from './generator.ts'
import { Lifetime } from './lifetime.ts'
import { describeMachine } from './machine.ts'
import { toMarkdown } from './report.ts'
import { runtime } from './runtime/suite.ts'
import { sandbox } from './sandbox/suite.ts'
import type { Setting, Suite } from './suite.ts'
import { watching } from './watching/suite.ts'

const SUITES: readonly Suite[] = [control, watching, runtime, sandbox, both]
const SUITE_NAMES = SUITES.map(({ name }) => name).join(', ')

process.exit(await main())

async function main(): Promise<number> {
  try {
    const { values, positionals, asked } = readCommandLine(process.argv.slice(2), process.env, benchSettings)
    if (asked !== undefined) console.log(help())
    else await bench(chosenSuites(positionals, values), values)
    return 0
  } catch (error) {
    console.error(`bench: ${error instanceof UsageError ? error.message : ((error as Error).stack ?? error)}`)
    return error instanceof UsageError ? 2 : 1
  }
}

async function bench(suites: readonly ChosenSuite[], config: BenchConfig): Promise<void> {
  const outDir = config.out === '' ? join(import.meta.dir, 'results') : config.out
  mkdirSync(outDir, { recursive: true })
  const lifetime = new Lifetime()
  const machine = describeMachine(lifetime.dir)
  const tools = toolsOf(lifetime)
  for (const { suite, only } of suites) {
    const report = await suite.run({ config, lifetime, machine, tools, only })
    const markdown = toMarkdown(report)
    await Bun.write(join(outDir, `${suite.name}.md`), markdown)
    await Bun.write(join(outDir, `${suite.name}.json`), `${JSON.stringify(report, null, 2)}\n`)
    console.log(markdown)
  }
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
  if (unknownSuite !== undefined) throw new UsageError(`unknown suite "${unknownSuite}" (there are: ${SUITE_NAMES})`)
  const suites = names.length === 0 ? SUITES : SUITES.filter(({ name }) => names.includes(name))
  const workloads = [...new Set(suites.flatMap((suite) => suite.workloads))]
  const unknown = only.find((name) => !workloads.includes(name))
  if (unknown !== undefined) throw new UsageError(`unknown workload "${unknown}" (there are: ${workloads.join(', ')})`)
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

function help(): string {
  return `Compares the services with floors: servers that do only the minimum of the same API (see bench/README.md).

Usage: bun run bench [suite...] [flags]

Flags:
${describeSettings(benchSettings)}
  --help
      Show this text.

Suites and their workloads:
${SUITES.map(({ name, workloads }) => `  ${name}: ${workloads.join(', ')}`).join('\n')}`
}
