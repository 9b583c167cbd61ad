/**
 * One local command of an attempt, from its start until its process group has ended.
 *
 * The process leads its own group and has a minimal environment. When the signal fires, the group gets TERM, then KILL,
 * so no process of it outlives the attempt. Output beyond the limit is read and dropped, so the process never blocks on
 * a full pipe.
 */
import { existsSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { TraceHeaders } from '../../shared/logs/trace.ts'
import { type Ending, type ProcessGroup, startGroup } from '../../shared/process/process-group.ts'
import type { BoundedText } from '../../shared/streams/bounded-output.ts'
import { isObject } from '../../shared/text/json.ts'
import { ExecutionError, type ExecutorContext, throwIfStopped } from './executor.ts'

/** Its value names the attempt, in all processes of it. */
export const ATTEMPT_VARIABLE = 'TASKMILL_ATTEMPT'

/** The trace of an attempt, as variables. None if one of `given` has its own. Source: OpenTelemetry, context propagation. */
export function traceVariables(trace: TraceHeaders | undefined, ...given: readonly unknown[]): Record<string, string> {
  const isOwn = given.some(
    (names) => isObject(names) && ['TRACEPARENT', 'TRACESTATE'].some((name) => Object.hasOwn(names, name)),
  )
  if (trace === undefined || isOwn) return {}
  const { traceparent, tracestate } = trace
  return { TRACEPARENT: traceparent, ...(tracestate !== undefined && { TRACESTATE: tracestate }) }
}

/** Settings of all commands of the service. */
export interface CommandOptions {
  /** Milliseconds between TERM and KILL. */
  readonly killGraceMs: number
  /** The environment of the process. */
  readonly env: Readonly<Record<string, string>>
}

export interface Command {
  readonly command: readonly [program: string, ...args: string[]]
  /** Working directory. Default: the service's. */
  readonly dir: string | undefined
  /** Default: empty. */
  readonly stdin?: string | undefined
  /** Variables of its own. They override those of every command. The name of the attempt is not among them. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** `stdout` gets both streams, in the order in which they were written. Readers see them as `output`. */
  readonly mergeStreams?: boolean
  /** Texts that are masked in the output. */
  readonly masks?: readonly Buffer[] | undefined
  /** Bytes of each stream that are kept. */
  readonly maxStreamBytes: number
}

export interface EndedCommand {
  readonly ending: Ending
  /** 128 + n if signal n killed the process, as in shells. */
  readonly exitCode: number
  readonly stdout: BoundedText
  readonly stderr: BoundedText
}

/** Runs `command` to its end. Throws `invalid_input` or `launch_failed` if it cannot start, not for its exit code. */
export async function runCommand(
  command: Command,
  options: CommandOptions,
  context: ExecutorContext,
): Promise<EndedCommand> {
  const { signal } = context
  checkDir(command)
  const what = `${command.command[0]} was not started any more`
  throwIfStopped(context, what)
  await context.begin()
  throwIfStopped(context, what)
  const group = launch(command, options, context)
  context.showOutput(
    group.stderr === undefined ? { output: group.stdout } : { stdout: group.stdout, stderr: group.stderr },
  )
  context.startedProcess(group.pid)
  signal.addEventListener('abort', group.stop, { once: true })
  group.leaderEnded.then(() => context.settled())
  const { ending, stdout, stderr } = await group.finished
  signal.removeEventListener('abort', group.stop)
  return { ending, exitCode: exitCodeOf(ending), stdout, stderr }
}

/** Returns `result` if the command exited with 0, else throws `<failure>: exit status N` with it. */
export function resultOf<T>({ ending, stdout, stderr }: EndedCommand, failure: string, result: T): T {
  if (ending.exitCode === 0) return result
  const [how, details] =
    ending.signal === undefined
      ? [`exit status ${ending.exitCode}`, { exit_code: ending.exitCode }]
      : [`terminated by signal ${ending.signal}`, { signal: ending.signal }]
  const telling = stderr.text.trim() === '' ? stdout : stderr
  throw new ExecutionError('exit_nonzero', `${failure}: ${how}`, { result, details, tail: telling.tail })
}

/** The error of a launch does not tell a missing directory from a missing program, so the directory is checked first. */
function checkDir({ command, dir }: Command): void {
  if (dir === undefined) return
  const isThere = existsSync(dir)
  if (isThere && statSync(dir).isDirectory()) return
  const fault = isThere ? 'is not a directory' : 'does not exist'
  throw new ExecutionError('launch_failed', `cannot start ${command[0]}: the working directory ${dir} ${fault}`)
}

function launch(
  { dir, stdin, env, masks = [], ...output }: Command,
  options: CommandOptions,
  { attemptId, trace }: ExecutorContext,
): ProcessGroup {
  try {
    return startGroup({
      ...output,
      ...(dir !== undefined && { cwd: dir }),
      ...(stdin !== undefined && { stdin }),
      ...(masks.length > 0 && { masks }),
      killGraceMs: options.killGraceMs,
      env: { ...options.env, ...traceVariables(trace, env), ...env, [ATTEMPT_VARIABLE]: attemptId },
    })
  } catch (error) {
    const cause = LAUNCH_FAULTS[systemCodeOf(error) ?? ''] ?? messageOf(error)
    throw new ExecutionError('launch_failed', `cannot start ${output.command[0]}: ${cause}`, { cause: error })
  }
}

const LAUNCH_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'no such program',
  EACCES: 'not executable',
  E2BIG: 'the arguments are too long',
  ENOEXEC: 'not an executable format',
  EAGAIN: 'the user of the service has no process left for tasks (ulimit -u)',
}

function exitCodeOf(ending: Ending): number {
  if (ending.signal === undefined) return ending.exitCode
  return 128 + (SIGNAL_NUMBERS[ending.signal] ?? 0)
}

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = constants.signals
