/** The parameters of a local command that the shell tool and cli-skills share: what it reads, and its environment. */
import { Type } from '../../shared/contract/schema-builder.ts'
import { stringMap } from '../../shared/contract/string-map.ts'
import { checkEnvironment } from '../../shared/request/execution.ts'
import { RequestFault } from '../../shared/request/fault.ts'
import { ATTEMPT_VARIABLE } from './command.ts'
import { ExecutionError, invalidInput } from './executor.ts'
import type { ShellPolicy } from './os/shell-policy.ts'

/** Maximum size of `stdin` in bytes. It is held in memory; larger input belongs into a file. */
export const MAX_STDIN_BYTES = 1024 * 1024

export const commandInputFields = {
  stdin: Type.Optional(
    Type.String({
      expected: 'string',
      description: 'What the program reads from its standard input. Default empty.',
    }),
  ),
  env: Type.Optional(
    stringMap({
      expected: 'object of strings',
      description: 'Environment variables, in addition to PATH, HOME, LANG, TMPDIR and USER. Records hide the values.',
      examples: [{ LC_ALL: 'C' }],
    }),
  ),
}

export interface CommandInput {
  readonly command?: string | undefined
  readonly args?: readonly string[] | undefined
  readonly script?: string | undefined
  readonly dir?: string | undefined
  readonly stdin?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
}

/** Variables that inject code into programs. With them, an allowed command could run any other code. */
const CODE_VARIABLES = /^(?:PATH|BASH_ENV|ENV|LD_.*|DYLD_.*)$/

const NO_PART = 'command, arguments and dir must not contain'

/** Throws `invalid_input`, or `denied` for a variable that would get around the allowlist. */
export function checkCommandInput(tool: string, input: CommandInput, policy: ShellPolicy): void {
  const { command = '', args = [], script = '', dir = '', stdin, env } = input
  for (const text of [command, ...args, script, dir]) {
    if (text.includes('\0')) throw invalidInput(`${NO_PART} NUL characters`)
    // The program would get another character in its place.
    if (!text.isWellFormed()) throw invalidInput(`${NO_PART} half of a character (a lone surrogate)`)
  }
  const bytes = stdin === undefined ? 0 : Buffer.byteLength(stdin)
  if (bytes > MAX_STDIN_BYTES) {
    throw invalidInput(
      `parse ${tool} params: stdin: expected at most ${MAX_STDIN_BYTES} bytes, got ${bytes}; put more into a file`,
    )
  }
  if (env === undefined) return
  if (Object.hasOwn(env, ATTEMPT_VARIABLE)) {
    throw invalidInput(`env.${ATTEMPT_VARIABLE} marks the processes of an attempt and cannot be replaced`)
  }
  try {
    checkEnvironment(env, 'env')
  } catch (error) {
    throw error instanceof RequestFault ? invalidInput(`parse ${tool} params: ${error.message}`) : error
  }
  checkCodeVariables('env', env, policy)
}

/** Throws `denied` for a variable among those of the field `at` that would get around the allowlist. */
export function checkCodeVariables(at: string, variables: object, policy: ShellPolicy): void {
  const name = policy === 'open' ? undefined : Object.keys(variables).find((each) => CODE_VARIABLES.test(each))
  if (name === undefined) return
  throw new ExecutionError('denied', `${at}.${name} cannot be set unless SERVICE_SHELL_POLICY=open lifts the allowlist`)
}
