/** `taskmill-control database check`: tells what is wrong with a PostgreSQL, and how to mend it. */
import { UsageError } from '../../shared/contract/errors.ts'
import { describeSettings, duration, readCommandLine } from '../../shared/settings/flags.ts'
import { databaseSettings } from '../config.ts'
import { databaseAddresses, openDatabaseFile } from '../log/postgres/database-addresses.ts'
import { checkDatabase } from '../log/postgres/database-check.ts'
import { useSchema } from '../log/postgres/schema-name.ts'

export const checkSettings = {
  ...databaseSettings,
  timeout: duration({
    default: '5s',
    minMs: 100,
    maxMs: 10 * 60_000,
    help: 'How long each server may take to answer all questions.',
  }),
}

interface Printed {
  /** For standard output. */
  readonly text: string
  readonly exitCode: number
}

/** Runs the subcommand of `argv`. Throws `UsageError`. */
export async function databaseCommand(
  [verb, ...argv]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Printed> {
  if (verb === '--help' || verb === '-h' || verb === '-help') return { text: help(), exitCode: 0 }
  if (verb !== 'check') throw new UsageError('database needs a verb: database check (see database --help)')
  const { values, positionals, asked } = readCommandLine(argv, env, checkSettings)
  if (asked !== undefined) return { text: help(), exitCode: 0 }
  // The argument itself may be an address with a password.
  if (positionals.length > 0)
    throw new UsageError('unexpected argument: give addresses with --database or --database-file')
  const urls = databaseAddresses(values)
  if (urls.length === 0) {
    throw new UsageError('no database to check: give --database, --database-file or SERVICE_DATABASE_URLS')
  }
  useSchema(values.databaseSchema)
  const report = await checkDatabase(urls, values.timeout, openDatabaseFile(values, urls))
  return { text: JSON.stringify(report), exitCode: report.ok ? 0 : 1 }
}

const help = () => `taskmill-control database check: tells what is wrong with a PostgreSQL, and how to mend it.

Usage: taskmill-control database check [flags]

It changes nothing in the database. It prints one JSON object: "servers" with what each of them is, and "findings" with a
"remedy" each. Exit codes: 0 without errors among them (warnings are choices), 1 with errors, 2 usage error.

Flags:
${describeSettings(checkSettings)}
  --help
      Show this text.`
