/**
 * The roles of the runtime executable. The only reader of argv and env.
 *
 * `serve` is the service. The client subcommands print its response on standard output and errors on standard error. The
 * modules of a role are loaded only when it runs. Threads of `serve` make calls that may never return (host/threads.ts).
 */

import { messageOf, startFault, UsageError } from '../shared/contract/errors.ts'
import { versionLine } from '../shared/process/build-info.ts'
import { VERSION } from '../shared/process/version.ts'
import { describeSettings, readCommandLine } from '../shared/settings/flags.ts'
import { serveSettings, serveVariables } from './config.ts'
import { PORTABLE_LAUNCHER } from './portable/subcommand.ts'

const SERVE_SUMMARY =
  'Run the service. It runs commands and scripts as processes with limits and accounting, in a sandbox on request.'
const DOCTOR_SUMMARY = 'Show what this host can enforce, and how to fix what it cannot.'

if (Bun.isMainThread) await begin()
else await serveThread()

async function begin(): Promise<void> {
  try {
    const exitCode = await main(process.argv.slice(2))
    if (exitCode !== undefined) process.exit(exitCode)
  } catch (error) {
    const fault = startFault(error)
    if (fault === undefined) throw error
    console.error(`taskmill-runtime: ${fault.message}`)
    process.exit(fault.exitCode)
  }
}

async function serveThread(): Promise<void> {
  const [{ lookAt, servePathChecks }, { ownRole }] = await Promise.all([
    import('./host/path-look.ts'),
    import('./host/threads.ts'),
  ])
  if (ownRole() === 'look') servePathChecks(lookAt)
  else {
    const { removeIfAbandoned } = await import('./launch/abandoned-cgroups.ts')
    servePathChecks((group, ask) => !ask(group) && removeIfAbandoned(group))
  }
}

/** The exit code, or undefined while the service runs. */
async function main([name, ...rest]: readonly string[]): Promise<number | undefined> {
  if (name === undefined) {
    console.error(await help())
    throw new UsageError('no subcommand (see --help)')
  }
  if (name.startsWith('-')) return await asked(name, rest)
  if (name === 'serve') return await serve(rest)
  if (name === PORTABLE_LAUNCHER) {
    const { runPortableLauncher } = await import('./portable/launcher.ts')
    return await runPortableLauncher(rest, process.env)
  }
  if (name === 'doctor') {
    const { doctor } = await import('./commands/doctor.ts')
    const { text, exitCode } = await doctor(rest, process.env)
    return text === '' ? exitCode : await print(text, exitCode)
  }
  return await client(name, rest)
}

async function asked(name: string, rest: readonly string[]): Promise<number> {
  const { asked } = readCommandLine([name, ...rest], process.env, {})
  console.log(asked === 'version' ? versionLine('taskmill-runtime') : await help())
  return 0
}

async function serve(argv: readonly string[]): Promise<number | undefined> {
  const { values, positionals, asked } = readCommandLine(argv, process.env, serveSettings)
  if (asked === 'help') console.log(serveHelp())
  else if (asked === 'version') console.log(versionLine('taskmill-runtime'))
  else if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}" (see serve --help)`)
  else {
    const { serve } = await import('./serve/serve.ts')
    return await serve(values, process.env)
  }
  return 0
}

async function client(name: string, argv: readonly string[]): Promise<number> {
  const { runClient } = await import('./commands/client.ts')
  const { text, complaint, exitCode } = await runClient(name, argv, process.env)
  const printed = text === '' ? exitCode : await print(text, exitCode)
  if (complaint !== undefined) console.error(`taskmill-runtime: ${complaint}`)
  return printed
}

/** Prints all of `text`. Returns `exitCode`, or 1 if standard output fails. */
async function print(text: string, exitCode: number): Promise<number> {
  const { writeOut } = await import('../shared/process/standard-output.ts')
  try {
    await writeOut(`${text}\n`)
    return exitCode
  } catch (error) {
    console.error(`taskmill-runtime: cannot write the answer to standard output: ${messageOf(error)}`)
    return 1
  }
}

async function help(): Promise<string> {
  const { CLIENT_COMMANDS, serverSetting } = await import('./commands/client.ts')
  const commands = Object.entries(CLIENT_COMMANDS).map(
    ([name, { summary, usage }]) => `  ${name} ${usage}\n      ${summary}`,
  )
  return `taskmill-runtime ${VERSION}: runs commands and scripts as processes with limits and accounting.

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

submit, status, wait, kill, run and health call a running service:
${describeSettings({ server: serverSetting })}
They print its response, a JSON object, on standard output. Exit codes: 0 success, 1 error, 2 usage error. run exits
with 0 only if the task succeeded.

Variables without a flag:
  SERVICE_TOKEN
      Sent as Authorization: Bearer if set.`
}

function serveHelp(): string {
  const variables = Object.entries(serveVariables).map(([name, sentence]) => `  ${name}\n      ${sentence}`)
  return `taskmill-runtime serve: ${SERVE_SUMMARY}

Usage: taskmill-runtime serve [flags]

Flags (--name value, --name=value or -name value; a flag overrides its variable, which overrides the default):
${describeSettings(serveSettings)}
  --help
      Show this text.

Variables without a flag:
${variables.join('\n')}`
}
