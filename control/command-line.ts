/**
 * Reads the command line and the environment, and does what they ask for. What that needs is loaded only then.
 */

import { startFault, UsageError } from '../shared/contract/errors.ts'
import { versionLine } from '../shared/process/build-info.ts'
import { VERSION } from '../shared/process/version.ts'
import { describeSettings, readCommandLine } from '../shared/settings/flags.ts'
import { controlSettings, controlVariables } from './config.ts'

const startedAt = performance.now()
const exitCode = await main()
if (exitCode !== undefined) process.exit(exitCode)

/** The exit code, or undefined while the service runs. */
async function main(): Promise<number | undefined> {
  try {
    const [first, ...rest] = process.argv.slice(2)
    if (first === 'database') return await database(rest)
    const { values, positionals, asked } = readCommandLine(process.argv.slice(2), process.env, controlSettings)
    if (asked === 'help') console.log(help())
    else if (asked === 'version') console.log(versionLine('taskmill-control'))
    else if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}" (see --help)`)
    else return await (await import('./serve.ts')).serve(values, startedAt)
    return 0
  } catch (error) {
    const fault = startFault(error)
    if (fault === undefined) throw error
    console.error(`taskmill-control: ${fault.message}`)
    return fault.exitCode
  }
}

/** The exit code. Throws `UsageError`. */
async function database(argv: readonly string[]): Promise<number> {
  const { databaseCommand } = await import('./commands/database.ts')
  const { text, exitCode } = await databaseCommand(argv, process.env)
  console.log(text)
  return exitCode
}

function help(): string {
  const variables = Object.entries(controlVariables).map(([name, sentence]) => `  ${name}\n      ${sentence}`)
  return `taskmill-control ${VERSION}: accepts task graphs and runs them.

Usage: taskmill-control [flags]
       taskmill-control database check [flags]    tells what is wrong with a PostgreSQL (see database --help)

Flags (--name value, --name=value or -name value; a flag overrides its variable, which overrides the default):
${describeSettings(controlSettings)}
  --help
      Show this text.
  --version
      Show the version.

Variables without a flag:
${variables.join('\n')}`
}
