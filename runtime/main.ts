/**
 * The runtime executable: one binary, several roles. The only reader of argv and env.
 *
 * `serve` is the service; the other subcommands are thin clients of it, print its response on standard output and
 * say what went wrong on standard error. Each role is loaded when it is asked for.
 */
import { messageOf, UsageError } from '../shared/errors.ts'
import { describeSettings, readCommandLine } from '../shared/flags.ts'
import { CallFailed, httpUrl, ServiceClient } from '../shared/http-client.ts'
import { bypassProxyForLoopback } from '../shared/proxy.ts'
import { VERSION } from '../shared/version.ts'
import type { Command } from './commands/command.ts'
import { health } from './commands/health.ts'
import { kill } from './commands/kill.ts'
import { run } from './commands/run.ts'
import { status } from './commands/status.ts'
import { submit } from './commands/submit.ts'
import { wait } from './commands/wait.ts'
import { serveSettings, serveVariables } from './config.ts'
import { PORTABLE_LAUNCHER } from './launcher/portable/subcommand.ts'

const CLIENT_COMMANDS: Readonly<Record<string, Command>> = { submit, status, wait, kill, run, health }

const SERVE_SUMMARY = 'Run the service: it takes commands and scripts and runs them as accounted, limited processes.'
const DOCTOR_SUMMARY = 'Show what this host can enforce, and the remedy for what it cannot.'

const serverSetting = httpUrl({
  variable: 'SERVICE_RUNTIME_URL',
  default: 'http://127.0.0.1:18080',
  help: 'Base address of the runtime service.',
})

try {
  const exitCode = await main(process.argv.slice(2))
  if (exitCode !== undefined) process.exit(exitCode)
} catch (error) {
  if (!(error instanceof UsageError) && !(error instanceof CallFailed)) throw error
  console.error(`taskmill-runtime: ${error.message}`)
  process.exit(error instanceof UsageError ? 2 : 1)
}

/** The exit code, or undefined while the service runs. */
async function main([name, ...rest]: readonly string[]): Promise<number | undefined> {
  if (name === undefined) {
    console.error(help())
    throw new UsageError('no subcommand (see --help)')
  }
  if (name.startsWith('-')) return await asked(name, rest)
  if (name === 'serve') return await serve(rest)
  if (name === PORTABLE_LAUNCHER) {
    const { runPortableLauncher } = await import('./launcher/portable/launcher.ts')
    return await runPortableLauncher(rest, process.env)
  }
  if (name === 'doctor') {
    const { doctor } = await import('./commands/doctor.ts')
    const { text, exitCode } = doctor(rest, process.env)
    return await print(text, exitCode)
  }
  const command = Object.hasOwn(CLIENT_COMMANDS, name) ? CLIENT_COMMANDS[name] : undefined
  if (command === undefined) {
    const known = ['serve', ...Object.keys(CLIENT_COMMANDS), 'doctor'].join(', ')
    throw new UsageError(`unknown subcommand "${name}" (there are: ${known})`)
  }
  return await call(name, command, rest)
}

async function asked(name: string, rest: readonly string[]): Promise<number> {
  const { asked } = readCommandLine([name, ...rest], process.env, {})
  console.log(asked === 'version' ? `taskmill-runtime ${VERSION}` : help())
  return 0
}

async function serve(argv: readonly string[]): Promise<number | undefined> {
  const { values, positionals, asked } = readCommandLine(argv, process.env, serveSettings)
  if (asked === 'help') console.log(serveHelp())
  else if (asked === 'version') console.log(`taskmill-runtime ${VERSION}`)
  else if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}" (see serve --help)`)
  else {
    const { serve } = await import('./serve.ts')
    return await serve(values, process.env)
  }
  return 0
}

async function call(name: string, command: Command, argv: readonly string[]): Promise<number> {
  const settings = { ...command.settings, server: serverSetting }
  const { values, positionals, asked } = readCommandLine(argv, process.env, settings)
  if (asked !== undefined) {
    console.log(asked === 'version' ? `taskmill-runtime ${VERSION}` : commandHelp(name, command))
    return 0
  }
  const [taskId = '', ...tooMany] = command.takesTaskId ? positionals : ['', ...positionals]
  if (tooMany.length > 0) throw new UsageError(`unexpected argument "${tooMany[0]}" (see ${name} --help)`)
  if (command.takesTaskId && taskId === '') throw new UsageError(`no task id (see ${name} --help)`)
  bypassProxyForLoopback(process.env)
  const client = new ServiceClient(
    { name: 'runtime', start: 'taskmill-runtime serve', urlVariable: 'SERVICE_RUNTIME_URL', urlFlag: '--server' },
    { url: String(values.server), token: process.env.SERVICE_TOKEN },
  )
  try {
    const { body, exitCode } = await command.run({ values, taskId, client })
    return await print(JSON.stringify(body), exitCode)
  } catch (error) {
    // What the service answered is an answer too: whoever reads our output finds the code and its details in it.
    if (error instanceof CallFailed && error.statusCode !== 0) await print(error.body, 1)
    throw error
  }
}

/** Prints all of it and gives the exit code: `exitCode`, or 1 when it could not be printed. */
async function print(text: string, exitCode: number): Promise<number> {
  try {
    await Bun.write(Bun.stdout, `${text}\n`)
    return exitCode
  } catch (error) {
    console.error(`taskmill-runtime: cannot write the answer to standard output: ${messageOf(error)}`)
    return 1
  }
}

function help(): string {
  const commands = Object.entries(CLIENT_COMMANDS).map(
    ([name, { summary, usage }]) => `  ${name} ${usage}\n      ${summary}`,
  )
  return `taskmill-runtime ${VERSION}: runs commands and scripts as accounted, limited processes.

Usage: taskmill-runtime <subcommand> [flags]

  serve [flags]
      ${SERVE_SUMMARY}
${commands.join('\n')}
  doctor
      ${DOCTOR_SUMMARY}
  --help, <subcommand> --help
      Show help.
  --version
      Show the version.

submit, status, wait, kill, run and health ask a running service:
${describeSettings({ server: serverSetting })}
They print its response, a JSON object, on standard output. Exit codes: 0 success, 1 error, 2 usage error; run exits
with 0 only when the task ended in success.

Variables without a flag:
  SERVICE_TOKEN
      Sent as Authorization: Bearer, where set.`
}

function serveHelp(): string {
  const variables = Object.entries(serveVariables).map(([name, sentence]) => `  ${name}\n      ${sentence}`)
  return `taskmill-runtime serve: ${SERVE_SUMMARY}

Usage: taskmill-runtime serve [flags]

Flags (--name value, --name=value or -name value; a flag beats its variable, which beats the default):
${describeSettings(serveSettings)}
  --help
      Show this text.

Variables without a flag:
${variables.join('\n')}`
}

function commandHelp(name: string, { summary, usage, settings }: Command): string {
  return `taskmill-runtime ${name}: ${summary}

Usage: taskmill-runtime ${name} ${usage}

Flags:
${describeSettings({ ...settings, server: serverSetting })}`
}
