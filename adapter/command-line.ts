/** Calls the subcommand, prints its JSON object to standard output, exits. Help goes to standard error. */

import { messageOf, UsageError } from '../shared/contract/errors.ts'
import { bypassProxyForLoopback } from '../shared/http/proxy.ts'
import { BUILD_INFO } from '../shared/process/build-info.ts'
import { readCommandLine } from '../shared/settings/flags.ts'
import { calledService } from './called-service.ts'
import { controlClient } from './client.ts'
import { act } from './commands/act.ts'
import { approve } from './commands/approve.ts'
import { audit } from './commands/audit.ts'
import { cancel } from './commands/cancel.ts'
import { capabilities } from './commands/capabilities.ts'
import { check } from './commands/check.ts'
import type { Commands } from './commands/command.ts'
import { cp } from './commands/cp.ts'
import { deleteByIds } from './commands/delete.ts'
import { doctor } from './commands/doctor.ts'
import { down } from './commands/down.ts'
import { ensureRunning } from './commands/ensure-running.ts'
import { files } from './commands/files.ts'
import { get } from './commands/get.ts'
import { graph } from './commands/graph.ts'
import { graphs } from './commands/graphs.ts'
import { health } from './commands/health.ts'
import { helpOn } from './commands/help.ts'
import { installMcp } from './commands/install-mcp.ts'
import { knownCommand } from './commands/known-command.ts'
import { list } from './commands/list.ts'
import { logs } from './commands/logs.ts'
import { mcp } from './commands/mcp.ts'
import { network } from './commands/network.ts'
import { open } from './commands/open.ts'
import { patch } from './commands/patch.ts'
import { pause, pauses, resume } from './commands/pause.ts'
import { reject } from './commands/reject.ts'
import { rerun } from './commands/rerun.ts'
import { retry } from './commands/retry.ts'
import { run } from './commands/run.ts'
import { runtimes } from './commands/runtimes.ts'
import { schedule } from './commands/schedule.ts'
import { schema } from './commands/schema.ts'
import { secrets } from './commands/secrets.ts'
import { signal } from './commands/signal.ts'
import { status } from './commands/status.ts'
import { submit } from './commands/submit.ts'
import { token } from './commands/token.ts'
import { tools } from './commands/tools.ts'
import { translate } from './commands/translate.ts'
import { up } from './commands/up.ts'
import { version } from './commands/version.ts'
import { wait } from './commands/wait.ts'
import { watch } from './commands/watch.ts'
import { commonSettings, type Output } from './common-settings.ts'
import { type Answer, failure, Interrupted, success } from './envelope.ts'
import { helpText, subcommandHelp } from './help.ts'
import { complain, outputBeforeFlags, printAnswer, printFailure } from './print.ts'

const COMMANDS: Commands = {
  run,
  submit,
  check,
  wait,
  watch,
  rerun,
  retry,
  patch,
  get,
  list,
  graphs,
  audit,
  graph,
  logs,
  files,
  cp,
  network,
  approve,
  reject,
  signal,
  pause,
  resume,
  pauses,
  cancel,
  delete: deleteByIds,
  act,
  translate,
  tools,
  capabilities,
  schedule,
  runtimes,
  token,
  secrets,
  health,
  open,
  up,
  status,
  down,
  doctor,
  'ensure-running': ensureRunning,
  mcp,
  'install-mcp': installMcp,
  schema,
  version,
  help: helpOn(() => COMMANDS),
}

/** Whether the running command writes to standard output itself. */
let isOutputTaken = false

let output: Output = outputBeforeFlags()

/** Aborted by the first signal, for a command that heeds it. */
const interruption = new AbortController()
let isInterruptionHeeded = false

process.on('SIGINT', () => void interrupted(new Interrupted('SIGINT', 130)))
process.on('SIGTERM', () => void interrupted(new Interrupted('SIGTERM', 143)))

try {
  const answer = await call(process.argv.slice(2))
  process.exit(answer === undefined ? 0 : await printAnswer(answer, output))
} catch (error) {
  process.exit(await fail(error))
}

/** Undefined if there is nothing to print: after help, or if the command printed everything itself. */
async function call(argv: readonly string[]): Promise<Answer | undefined> {
  const [name, ...rest] = argv
  if (name === undefined) {
    console.error(helpText(COMMANDS))
    throw new UsageError('no subcommand (see --help)')
  }
  if (name.startsWith('-')) {
    const { asked } = readCommandLine(argv.slice(0, name.includes('=') ? 1 : 2), {}, commonSettings)
    if (asked === 'version') return success(BUILD_INFO)
    if (asked === 'help') {
      console.error(helpText(COMMANDS))
      return undefined
    }
    throw new UsageError(`flags come after the subcommand: taskmill SUBCOMMAND ${name}`)
  }
  const command = knownCommand(name, COMMANDS)
  const settings = { ...command.settings, ...commonSettings }
  const { values, positionals, given, asked } = readCommandLine(rest, process.env, settings)
  if (asked === 'help') {
    console.error(subcommandHelp(name, command))
    return undefined
  }
  if (asked === 'version') return success(BUILD_INFO)
  output = values.output
  if (positionals.length > command.maxArguments) {
    const unexpected = positionals[command.maxArguments]
    throw new UsageError(`unexpected argument "${unexpected}" for ${name} (see ${name} --help)`)
  }
  bypassProxyForLoopback(process.env)
  const { env } = process
  const findService = () => calledService(given.has('url') ? values.url : undefined, values.url, env)
  const service = findService()
  const client = controlClient(service.url, service.token)
  isOutputTaken = command.ownsOutput ?? false
  isInterruptionHeeded = command.heedsInterruption ?? false
  return command.run({
    ...{ values, positionals, given, client, service, findService, env, printNow },
    interruption: interruption.signal,
  })
}

async function printNow(answer: Answer): Promise<void> {
  isOutputTaken = true
  await printAnswer(answer, output)
}

/** Prints what the command threw. Returns the exit code. */
async function fail(thrown: unknown): Promise<number> {
  if (!isOutputTaken) return printFailure(thrown, output)
  await complain(messageOf(thrown))
  return failure(thrown).exitCode
}

async function interrupted(interrupt: Interrupted): Promise<void> {
  if (isInterruptionHeeded && !interruption.signal.aborted) interruption.abort(interrupt)
  else process.exit(await fail(interrupt))
}
