/**
 * Runs a program or a script: `{stdout, stderr, exit_code, runner, truncated}`.
 *
 * Only the first MiB of each stream is kept. `command.ts` starts the process, and ends it when the attempt is stopped.
 */
import type { Static } from '@sinclair/typebox'
import { Type } from '../../../shared/contract/schema-builder.ts'
import type { SecretNames } from '../../../shared/request/secrets.ts'
import { type CommandOptions, resultOf, runCommand } from '../command.ts'
import { checkCommandInput, commandInputFields } from '../command-input.ts'
import type { CommandSecrets } from '../command-secrets.ts'
import { type ExecutorContext, invalidInput } from '../executor.ts'
import { ToolParams } from '../params.ts'
import type { OsTool } from './os.ts'
import { checkCommand, checkScript, type ShellPolicy } from './shell-policy.ts'

/** Maximum bytes of stdout and of stderr that are kept. */
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
    ...commandInputFields,
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
  /** 128 + n if signal n killed the process, as in shells. */
  readonly exit_code: number
  readonly runner: 'sh' | 'direct'
  /** Whether output was cut off. The next two fields name the stream. */
  readonly truncated: boolean
  readonly stdout_truncated: boolean
  readonly stderr_truncated: boolean
}

export interface ShellOptions extends CommandOptions {
  readonly policy: ShellPolicy
  readonly secrets: CommandSecrets
}

export const shell = (options: ShellOptions): OsTool => ({
  name: 'shell',
  params: shellParams,
  secrets: options.secrets.taking,
  checkInput: (input, secrets) => {
    const params = shellParams.parse(input)
    checkCommandInput('shell', params, options.policy)
    if (secrets !== undefined) options.secrets.check(secrets)
    commandOf(params, options.policy)
  },
  execute: (input, context, secrets) => runShell(shellParams.parse(input), secrets, options, context),
})

async function runShell(
  params: Static<typeof shellParams.schema>,
  secrets: SecretNames | undefined,
  options: ShellOptions,
  context: ExecutorContext,
): Promise<ShellResult> {
  checkCommandInput('shell', params, options.policy)
  const { command, runner } = commandOf(params, options.policy)
  const { dir, stdin } = params
  const variables = await options.secrets.variables('shell', secrets, params.env, context)
  const maxStreamBytes = MAX_STREAM_BYTES
  const ended = await runCommand({ command, dir, stdin, ...variables, maxStreamBytes }, options, context)
  const { stdout, stderr, exitCode } = ended
  return resultOf<ShellResult>(ended, 'command failed', {
    stdout: stdout.text,
    stderr: stderr.text,
    exit_code: exitCode,
    runner,
    truncated: stdout.truncated || stderr.truncated,
    stdout_truncated: stdout.truncated,
    stderr_truncated: stderr.truncated,
  })
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
