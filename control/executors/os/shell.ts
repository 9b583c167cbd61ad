/**
 * Runs a program or a script: `{stdout, stderr, exit_code, runner, truncated}`.
 *
 * The process leads a group of its own, gets an empty stdin and a minimal environment, and nothing of its group outlives
 * the attempt. Only the first MiB of each stream is kept; the rest is read and dropped, so that it never blocks.
 */
import { existsSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { type Static, Type } from '@sinclair/typebox'
import { messageOf, systemCodeOf } from '../../../shared/errors.ts'
import { type Ending, type ProcessGroup, startGroup } from '../../../shared/process-group.ts'
import { ExecutionError, type ExecutorContext, invalidInput } from '../executor.ts'
import { ToolParams } from '../params.ts'
import type { OsTool } from './os.ts'
import { checkCommand, checkScript, type ShellPolicy } from './shell-policy.ts'

/** Bytes kept of each of stdout and stderr. */
export const MAX_STREAM_BYTES = 1024 * 1024

export const shellParams = new ToolParams(
  'shell',
  Type.Object({
    command: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'Program: a name or a path. Required, unless a script is given.',
        examples: ['ls'],
      }),
    ),
    args: Type.Optional(
      Type.Array(Type.String(), {
        expected: 'array of strings',
        description: 'Arguments, passed on as they are.',
        examples: [['-la', '/tmp']],
      }),
    ),
    script: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'Shell script instead of a command; needs the open policy.',
        examples: ['ls *.txt | wc -l'],
      }),
    ),
    runner: Type.Optional(
      Type.Union([Type.Literal('auto'), Type.Literal('sh'), Type.Literal('direct')], {
        expected: 'auto, sh or direct',
        description: 'What runs a script. Default auto, which is sh.',
      }),
    ),
    dir: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'Working directory. Default: the service’s.',
        examples: ['/var/log'],
      }),
    ),
  }),
)

export interface ShellResult {
  readonly stdout: string
  readonly stderr: string
  /** 128 + n for death by signal n, as shells say it. */
  readonly exit_code: number
  readonly runner: 'sh' | 'direct'
  /** One of the streams had more than is kept; which, the next two say. */
  readonly truncated: boolean
  readonly stdout_truncated: boolean
  readonly stderr_truncated: boolean
}

export interface ShellOptions {
  readonly policy: ShellPolicy
  /** Milliseconds between TERM and KILL. */
  readonly killGraceMs: number
  /** All that a process gets to see, besides what a shell sets by itself. */
  readonly env: Readonly<Record<string, string>>
}

export const shell = (options: ShellOptions): OsTool => ({
  name: 'shell',
  execute: (input, context) => runShell(shellParams.parse(input), options, context),
})

async function runShell(
  params: Static<typeof shellParams.schema>,
  options: ShellOptions,
  context: ExecutorContext,
): Promise<ShellResult> {
  const { signal } = context
  const { command, runner } = commandOf(params, options.policy)
  context.begin()
  const env = { ...options.env, TASKMILL_ATTEMPT: context.attemptId }
  const group = launch(command, params.dir, { ...options, env })
  context.startedProcess(group.pid)
  signal.addEventListener('abort', group.stop, { once: true })
  if (signal.aborted) group.stop()
  group.leaderEnded.then(() => context.settled())
  const { ending, stdout, stderr } = await group.finished
  signal.removeEventListener('abort', group.stop)

  const result: ShellResult = {
    stdout: stdout.text,
    stderr: stderr.text,
    exit_code: exitCodeOf(ending),
    runner,
    truncated: stdout.truncated || stderr.truncated,
    stdout_truncated: stdout.truncated,
    stderr_truncated: stderr.truncated,
  }
  if (ending.exitCode === 0) return result
  const [how, details] =
    ending.signal === undefined
      ? [`exit status ${ending.exitCode}`, { exit_code: ending.exitCode }]
      : [`terminated by signal ${ending.signal}`, { signal: ending.signal }]
  throw new ExecutionError('exit_nonzero', `command failed: ${how}`, { result, details })
}

type Command = { readonly command: readonly [string, ...string[]]; readonly runner: 'sh' | 'direct' }

function commandOf({ command, args, script, runner }: Static<typeof shellParams.schema>, policy: ShellPolicy): Command {
  if (script !== undefined && script.trim() !== '') {
    if (command !== undefined) throw invalidInput('command and script exclude each other')
    if (runner === 'direct') throw invalidInput('runner "direct" cannot be used with script')
    checkScript(policy)
    return { command: ['/bin/sh', '-c', script, 'sh', ...(args ?? [])], runner: 'sh' }
  }
  if (command === undefined || command.trim() === '') throw invalidInput('command is required')
  checkCommand(policy, command)
  return { command: [command, ...(args ?? [])], runner: 'direct' }
}

function launch(command: Command['command'], dir: string | undefined, options: ShellOptions): ProcessGroup {
  if ([...command, dir ?? ''].some((part) => part.includes('\0'))) {
    throw invalidInput('command, arguments and dir must not contain NUL characters')
  }
  // A missing directory and a missing program fail alike, so the directory is looked at first.
  if (dir !== undefined && !(existsSync(dir) && statSync(dir).isDirectory())) {
    throw new ExecutionError('launch_failed', `cannot start ${command[0]}: the working directory ${dir} does not exist`)
  }
  const { env, killGraceMs } = options
  try {
    return startGroup({
      command,
      env,
      killGraceMs,
      maxStreamBytes: MAX_STREAM_BYTES,
      ...(dir !== undefined && { cwd: dir }),
    })
  } catch (error) {
    const cause = LAUNCH_FAULTS[systemCodeOf(error) ?? ''] ?? messageOf(error)
    throw new ExecutionError('launch_failed', `cannot start ${command[0]}: ${cause}`, { cause: error })
  }
}

const LAUNCH_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'no such program',
  EACCES: 'not executable',
  E2BIG: 'the arguments are too long',
  ENOEXEC: 'not an executable format',
}

function exitCodeOf(ending: Ending): number {
  if (ending.signal === undefined) return ending.exitCode
  return 128 + (SIGNAL_NUMBERS[ending.signal] ?? 0)
}

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = constants.signals
