/** The client: calls the subcommand, prints its JSON object to standard output, exits. Help goes to standard error. */
import { messageOf, UsageError } from '../shared/errors.ts'
import { describeSettings, readCommandLine } from '../shared/flags.ts'
import { bypassProxyForLoopback } from '../shared/proxy.ts'
import { VERSION } from '../shared/version.ts'
import { controlClient, serviceUrlSetting } from './client.ts'
import { act } from './commands/act.ts'
import { cancel } from './commands/cancel.ts'
import { capabilities } from './commands/capabilities.ts'
import type { Command } from './commands/command.ts'
import { ensureRunning } from './commands/ensure-running.ts'
import { health } from './commands/health.ts'
import { installMcp } from './commands/install-mcp.ts'
import { mcp } from './commands/mcp.ts'
import { submit } from './commands/submit.ts'
import { tools } from './commands/tools.ts'
import { translate } from './commands/translate.ts'
import { wait } from './commands/wait.ts'
import { type Answer, type Envelope, EXIT, failure } from './envelope.ts'

const COMMANDS: Readonly<Record<string, Command>> = {
  capabilities,
  tools,
  act,
  translate,
  submit,
  wait,
  cancel,
  health,
  'ensure-running': ensureRunning,
  mcp,
  'install-mcp': installMcp,
}

/** Whether the running command speaks a protocol on standard output. */
let isOutputTaken = false

process.on('SIGINT', () => void interrupted('SIGINT', 130))
process.on('SIGTERM', () => void interrupted('SIGTERM', 143))

try {
  const answer = await run(process.argv.slice(2))
  if (answer === undefined) process.exit(0)
  for (const warning of answer.warnings ?? []) console.error(`taskmill: ${warning}`)
  process.exit(await print({ ok: true, data: answer.data }, answer.exitCode))
} catch (error) {
  const { envelope, exitCode } = failure(error)
  process.exit(await print(envelope, exitCode))
}

/** Undefined if there is nothing to print: after help, or if the command printed everything itself. */
async function run(argv: readonly string[]): Promise<Answer | undefined> {
  const [name, ...rest] = argv
  if (name === undefined) {
    console.error(help())
    throw new UsageError('no subcommand (see --help)')
  }
  if (name.startsWith('-')) {
    const { asked } = readCommandLine(argv, process.env, {})
    if (asked === 'version') return { data: { version: VERSION }, exitCode: 0 }
    if (asked === 'help') {
      console.error(help())
      return undefined
    }
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined)
    throw new UsageError(`unknown subcommand "${name}" (there are: ${Object.keys(COMMANDS).join(', ')})`)

  const settings = { ...command.settings, url: serviceUrlSetting }
  const { values, positionals, asked } = readCommandLine(rest, process.env, settings)
  if (asked === 'help') {
    console.error(commandHelp(name, command))
    return undefined
  }
  if (asked === 'version') return { data: { version: VERSION }, exitCode: 0 }
  if (positionals.length > 0 && !command.takesArguments) {
    throw new UsageError(`unexpected argument "${positionals[0]}" for ${name} (see ${name} --help)`)
  }
  bypassProxyForLoopback(process.env)
  const client = controlClient(String(values.url), process.env.SERVICE_TOKEN)
  isOutputTaken = command.speaksProtocol ?? false
  return command.run({ values, positionals, client, env: process.env })
}

/** Prints the envelope. Returns `exitCode`, or 1 if printing failed. */
async function print(envelope: Envelope, exitCode: number): Promise<number> {
  if (isOutputTaken) {
    if (!envelope.ok) console.error(`taskmill: ${envelope.error.message}`)
    return exitCode
  }
  try {
    await Bun.write(Bun.stdout, `${JSON.stringify(envelope)}\n`)
    return exitCode
  } catch (error) {
    console.error(`taskmill: cannot write the answer to standard output: ${messageOf(error)}`)
    return EXIT.error
  }
}

async function interrupted(signal: string, exitCode: number): Promise<never> {
  process.exit(await print(failure(new Error(`interrupted by ${signal}`)).envelope, exitCode))
}

function help(): string {
  const lines = Object.entries(COMMANDS).map(([name, { summary, usage }]) => `  ${name} ${usage}\n      ${summary}`)
  return `taskmill ${VERSION}: the client of a taskmill control service. Every subcommand prints one JSON object on
standard output (except mcp, which serves a protocol there):
{"ok": true, "data": {...}} or {"ok": false, "error": {"message", "status_code", "body"}}.

Usage: taskmill <subcommand> [flags]

${lines.join('\n')}
  --help, <subcommand> --help
      Show help, on standard error.
  --version
      Print the version, in the same form.

Every subcommand takes:
${describeSettings({ url: serviceUrlSetting })}

Variables without a flag:
  SERVICE_TOKEN
      Sent as Authorization: Bearer if set.

Exit codes: 0 success, 1 error, 2 usage error, 3 a wait timed out. ensure-running: 4 the control service is not
reachable, 5 the runtime service is not ready.`
}

function commandHelp(name: string, { summary, usage, settings }: Command): string {
  return `taskmill ${name}: ${summary}

Usage: taskmill ${name} ${usage}

Flags:
${describeSettings({ ...settings, url: serviceUrlSetting })}`
}
