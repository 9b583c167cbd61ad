/**
 * What is to be run. The fields of a command and those of a script exclude each other; blank ones count as absent. Pure.
 *
 * The kernel takes the strings of a program and its environment only up to a size, and answers E2BIG or worse beyond it.
 * What it can never take is refused here, while there is somebody to tell.
 */
import type { ExecutionSpec } from '../../shared/contract/runtime-request.ts'
import { invalidInput } from '../refusal.ts'
import { checkText, isBlank, shortened } from './text.ts'

/** Bytes of one argument or one `NAME=value`: the kernel's MAX_ARG_STRLEN without the NUL at the end. */
export const MAX_STRING_BYTES = 128 * 1024 - 1

/**
 * Bytes of all of them together. The kernel takes a quarter of the stack limit, 2 MiB as it usually is; what is left to
 * that is for the launcher's own arguments and the variables that every task has.
 */
export const MAX_STRINGS_BYTES = 2 * 1024 * 1024 - 128 * 1024

/** What the kernel counts for a string besides its bytes: the NUL and a pointer. */
const BYTES_PER_STRING = 1 + 8

/** Bytes of a path: PATH_MAX without the NUL. */
export const MAX_PATH_BYTES = 4095

const DEFAULT_INTERPRETER = '/bin/sh'

type Environment = Readonly<Record<string, string>>

export interface CommandExecution {
  readonly kind: 'command'
  readonly program: string
  readonly args: readonly string[]
  readonly env: Environment
}

export interface ScriptExecution {
  readonly kind: 'script'
  readonly script: string
  /** Program and flags; the path of the script comes after them. */
  readonly interpreter: readonly string[]
  readonly env: Environment
}

export type Execution = CommandExecution | ScriptExecution

/** Throws 400 with the first fault. */
export function validExecution(given: ExecutionSpec | undefined): Execution {
  if (given === undefined) throw invalidInput('execution is required')
  const { kind } = given
  if (kind === undefined) throw invalidInput('execution.kind is required (command or script)')
  if (kind !== 'command' && kind !== 'script') throw invalidInput('execution.kind must be command or script')
  return kind === 'command' ? validCommand(given) : validScript(given)
}

function validCommand({ program = '', args = [], script, interpreter = [], env = {} }: ExecutionSpec): Execution {
  if (isBlank(program)) throw invalidInput('execution.program is required for command tasks')
  if (!isBlank(script)) throw invalidInput('execution.script must be empty for command tasks')
  if (interpreter.length > 0) throw invalidInput('execution.interpreter must be empty for command tasks')
  checkProgram('execution.program', program)
  checkStrings('execution.args', args)
  checkEnvironment(env)
  checkTogether([program, ...args], env)
  return { kind: 'command', program, args, env }
}

function validScript({ program, args = [], script = '', interpreter, env = {} }: ExecutionSpec): Execution {
  if (isBlank(script)) throw invalidInput('execution.script is required for script tasks')
  if (!isBlank(program)) throw invalidInput('execution.program must be empty for script tasks')
  if (args.length > 0) throw invalidInput('execution.args must be empty for script tasks')
  checkText('execution.script', script)
  if (interpreter !== undefined) {
    if (isBlank(interpreter[0])) throw invalidInput('execution.interpreter must name a program, or be left out')
    checkProgram('execution.interpreter[0]', interpreter[0]!)
    checkStrings('execution.interpreter', interpreter)
  }
  checkEnvironment(env)
  checkTogether(interpreter ?? [], env)
  return { kind: 'script', script, interpreter: interpreter ?? [DEFAULT_INTERPRETER], env }
}

function checkProgram(path: string, program: string): void {
  checkText(path, program)
  const bytes = Buffer.byteLength(program)
  if (bytes > MAX_PATH_BYTES) throw invalidInput(`${path} has ${bytes} bytes (a path has at most ${MAX_PATH_BYTES})`)
}

function checkStrings(path: string, strings: readonly string[]): void {
  for (const [i, string] of strings.entries()) {
    checkText(`${path}[${i}]`, string)
    checkStringSize(`${path}[${i}]`, Buffer.byteLength(string))
  }
}

function checkEnvironment(env: Environment): void {
  for (const [name, value] of Object.entries(env)) {
    if (isBlank(name) || name.includes('=')) {
      throw invalidInput('execution.env keys must be non-empty and cannot contain "="')
    }
    const path = `execution.env.${shortened(name)}`
    checkText(`the name of ${path}`, name)
    checkText(path, value)
    checkStringSize(path, Buffer.byteLength(name) + 1 + Buffer.byteLength(value))
  }
}

function checkStringSize(path: string, bytes: number): void {
  if (bytes <= MAX_STRING_BYTES) return
  throw invalidInput(
    `${path} has ${bytes} bytes and a program takes at most ${MAX_STRING_BYTES} in one string (write it to a file, or make it part of a script)`,
  )
}

function checkTogether(strings: readonly string[], env: Environment): void {
  let bytes = 0
  for (const string of strings) bytes += Buffer.byteLength(string) + BYTES_PER_STRING
  for (const [name, value] of Object.entries(env)) {
    bytes += Buffer.byteLength(name) + 1 + Buffer.byteLength(value) + BYTES_PER_STRING
  }
  if (bytes <= MAX_STRINGS_BYTES) return
  throw invalidInput(
    `execution has ${bytes} bytes of arguments and environment and a program takes at most ${MAX_STRINGS_BYTES} (write them to a file, or make them part of a script)`,
  )
}
