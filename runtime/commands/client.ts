/** The client subcommands: thin clients of the HTTP API. `command-line.ts` loads them only for a client subcommand or for help. */

import { UsageError } from '../../shared/contract/errors.ts'
import { CallFailed, httpUrl, ServiceClient } from '../../shared/http/client.ts'
import { bypassProxyForLoopback } from '../../shared/http/proxy.ts'
import { versionLine } from '../../shared/process/build-info.ts'
import { describeSettings, readCommandLine } from '../../shared/settings/flags.ts'
import type { Command } from './command.ts'
import { health } from './health.ts'
import { kill } from './kill.ts'
import { run } from './run.ts'
import { status } from './status.ts'
import { submit } from './submit.ts'
import { wait } from './wait.ts'

export const CLIENT_COMMANDS: Readonly<Record<string, Command>> = { submit, status, wait, kill, run, health }

export const serverSetting = httpUrl({
  variable: 'SERVICE_RUNTIME_URL',
  default: 'http://127.0.0.1:18080',
  help: 'Base URL of the runtime service.',
})

/** `text` goes to standard output, `complaint` to standard error. */
export interface ClientAnswer {
  readonly text: string
  readonly complaint?: string
  readonly exitCode: number
}

/** Runs the subcommand `name`. Throws `UsageError`. */
export async function runClient(
  name: string,
  argv: readonly string[],
  env: Record<string, string | undefined>,
): Promise<ClientAnswer> {
  const command = Object.hasOwn(CLIENT_COMMANDS, name) ? CLIENT_COMMANDS[name] : undefined
  if (command === undefined) {
    const known = ['serve', ...Object.keys(CLIENT_COMMANDS), 'doctor'].join(', ')
    throw new UsageError(`unknown subcommand "${name}" (there are: ${known})`)
  }
  const settings = { ...command.settings, server: serverSetting }
  const { values, positionals, asked } = readCommandLine(argv, env, settings)
  if (asked === 'version') return { text: versionLine('taskmill-runtime'), exitCode: 0 }
  if (asked === 'help') return { text: commandHelp(name, command), exitCode: 0 }
  const [taskId = '', ...tooMany] = command.takesTaskId ? positionals : ['', ...positionals]
  if (tooMany.length > 0) throw new UsageError(`unexpected argument "${tooMany[0]}" (see ${name} --help)`)
  if (command.takesTaskId && taskId === '') throw new UsageError(`no task id (see ${name} --help)`)
  bypassProxyForLoopback(env)
  const client = new ServiceClient(
    {
      ...{ name: 'runtime', start: 'taskmill-runtime serve', urlVariable: 'SERVICE_RUNTIME_URL', urlFlag: '--server' },
      tokenVariable: 'SERVICE_TOKEN',
    },
    { url: String(values.server), token: env.SERVICE_TOKEN },
  )
  try {
    const { body, exitCode } = await command.run({ values, taskId, client })
    return { text: JSON.stringify(body), exitCode }
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error
    // The error body of the service goes to standard output: callers read the error code and its details there.
    return { text: error.statusCode === 0 ? '' : error.body, complaint: error.message, exitCode: 1 }
  }
}

function commandHelp(name: string, { summary, usage, settings }: Command): string {
  return `taskmill-runtime ${name}: ${summary}

Usage: taskmill-runtime ${name} ${usage}

Flags:
${describeSettings({ ...settings, server: serverSetting })}`
}
