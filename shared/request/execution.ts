/**
 * What is to be run. The fields of a command and those of a script exclude each other; blank ones count as absent.
 * Pure.
 *
 * The kernel takes the strings of a program and its environment only up to a size, and answers E2BIG or worse beyond
 * it. What it can never take is refused here, while there is somebody to tell.
 */
import type { ExecutionSpec } from '../contract/runtime-request.ts'
import { MAX_SECRETS } from '../contract/secrets.ts'
import { HIDDEN_VALUE, hiddenValueText } from '../process/hidden-env.ts'
import { requestFault } from './fault.ts'
import { placeholdersIn, type VariableValue, variableText } from './placeholder.ts'
import { isSecretName, SECRET_NAME_RULE } from './secrets.ts'
import { checkText, checkUnicode, isBlank, isSound, shortened } from './text.ts'

/** Bytes of one argument or one `NAME=value`: the kernel's MAX_ARG_STRLEN without the NUL at the end. */
export const MAX_STRING_BYTES = 128 * 1024 - 1

/**
 * Bytes of all of them together. The kernel takes a quarter of the stack limit, 2 MiB as it usually is; what is left to
 * that is for the launcher's own arguments and the variables that every task has.
 */
export const MAX_STRINGS_BYTES = 2 * 1024 * 1024 - 128 * 1024

/** Bytes that the kernel adds to each string: the NUL and a pointer. */
const BYTES_PER_STRING = 1 + 8

/** Bytes of a path: PATH_MAX without the NUL. */
export const MAX_PATH_BYTES = 4095

const DEFAULT_INTERPRETER = '/bin/sh'

type Environment = Readonly<Record<string, VariableValue>>

interface AnyExecution {
  readonly env: Environment
  /** Text on its standard input, which it gets as a file: no limit of the kernel counts. Absent without any. */
  readonly stdin?: string
}

export interface CommandExecution extends AnyExecution {
  readonly kind: 'command'
  readonly program: string
  readonly args: readonly string[]
}

export interface ScriptExecution extends AnyExecution {
  readonly kind: 'script'
  readonly script: string
  /** Program and flags; the path of the script comes after them. */
  readonly interpreter: readonly string[]
}

export type Execution = CommandExecution | ScriptExecution

/** Throws `RequestFault` with the first fault. */
export function validExecution(given: ExecutionSpec | undefined): Execution {
  if (given === undefined) throw requestFault('execution is required')
  const { kind } = given
  if (kind === undefined) throw requestFault('execution.kind is required (command or script)')
  if (kind !== 'command' && kind !== 'script') throw requestFault('execution.kind must be command or script')
  const execution = kind === 'command' ? validCommand(given) : validScript(given)
  const { stdin = '' } = given
  if (stdin === '') return execution
  checkUnicode('execution.stdin', stdin)
  return { ...execution, stdin }
}

function validCommand({ program = '', args = [], script, interpreter = [], env = {} }: ExecutionSpec): Execution {
  if (isBlank(program)) throw requestFault('execution.program is required for command tasks')
  if (!isBlank(script)) throw requestFault('execution.script must be empty for command tasks')
  if (interpreter.length > 0) throw requestFault('execution.interpreter must be empty for command tasks')
  checkProgram('execution.program', program)
  checkStrings('execution.args', args)
  checkEnvironment(env)
  const execution: Execution = { kind: 'command', program, args, env }
  checkTogether(execution)
  return execution
}

function validScript({ program, args = [], script = '', interpreter, env = {} }: ExecutionSpec): Execution {
  if (isBlank(script)) throw requestFault('execution.script is required for script tasks')
  if (!isBlank(program)) throw requestFault('execution.program must be empty for script tasks')
  if (args.length > 0) throw requestFault('execution.args must be empty for script tasks')
  checkText('execution.script', script)
  if (interpreter !== undefined) {
    if (isBlank(interpreter[0])) throw requestFault('execution.interpreter must name a program, or be left out')
    checkProgram('execution.interpreter[0]', interpreter[0]!)
    checkStrings('execution.interpreter', interpreter)
  }
  checkEnvironment(env)
  const execution: Execution = { kind: 'script', script, interpreter: interpreter ?? [DEFAULT_INTERPRETER], env }
  checkTogether(execution)
  return execution
}

function checkProgram(path: string, program: string): void {
  checkText(path, program)
  const bytes = Buffer.byteLength(program)
  if (bytes > MAX_PATH_BYTES) throw requestFault(`${path} has ${bytes} bytes (a path has at most ${MAX_PATH_BYTES})`)
}

function checkStrings(path: string, strings: readonly string[]): void {
  for (let i = 0; i < strings.length; i++) {
    const string = strings[i]!
    const bytes = Buffer.byteLength(string)
    if (isSound(string) && bytes <= MAX_STRING_BYTES) continue // the path of each would cost more than the check
    checkText(`${path}[${i}]`, string)
    throw tooLong(`${path}[${i}]`, bytes)
  }
}

/** Throws `RequestFault` with the first fault of `env`, which `at` names. */
export function checkEnvironment(env: Environment, at = 'execution.env'): void {
  const placeholders = placeholdersIn(env)
  if (placeholders.length > MAX_SECRETS)
    throw requestFault(`${at} has ${placeholders.length} placeholders for secrets (a task has at most ${MAX_SECRETS})`)
  for (const [name, secret] of placeholders) {
    if (isSecretName(secret)) continue
    throw requestFault(`${at}.${shortened(name)}.placeholder_for: ${SECRET_NAME_RULE}, got ${shortened(secret)}`)
  }
  for (const [name, given] of Object.entries(env)) {
    const value = variableText('', given) // as long as that of each task
    if (isBlank(name) || name.includes('=')) {
      throw requestFault(`${at} keys must be non-empty and cannot contain "="`)
    }
    const bytes = variableBytes(name, value)
    if (isSound(name) && isSound(value) && value !== HIDDEN_VALUE && bytes <= MAX_STRING_BYTES) continue
    const path = `${at}.${shortened(name)}`
    checkText(`the name of ${path}`, name)
    checkText(path, value)
    if (value === HIDDEN_VALUE) throw requestFault(hiddenValueText(path))
    throw tooLong(path, bytes)
  }
}

const tooLong = (path: string, bytes: number) =>
  requestFault(
    `${path} has ${bytes} bytes and a program takes at most ${MAX_STRING_BYTES} in one string (write it to a file, or make it part of a script)`,
  )

function checkTogether(execution: Execution): void {
  const bytes = bytesTogether(execution)
  if (bytes <= MAX_STRINGS_BYTES) return
  throw requestFault(
    `execution has ${bytes} bytes of arguments and environment and a program takes at most ${MAX_STRINGS_BYTES} (write them to a file, or make them part of a script)`,
  )
}

/** Bytes that the kernel counts for the arguments and the environment of `execution`, with `more` variables. */
export function bytesTogether(execution: Execution, more: Environment = {}): number {
  const strings = execution.kind === 'command' ? [execution.program, ...execution.args] : execution.interpreter
  let bytes = 0
  for (const string of strings) bytes += Buffer.byteLength(string) + BYTES_PER_STRING
  for (const env of [execution.env, more]) {
    for (const [name, value] of Object.entries(env))
      bytes += variableBytes(name, variableText('', value)) + BYTES_PER_STRING
  }
  return bytes
}

/** Bytes of `NAME=value`. */
export const variableBytes = (name: string, value: string): number =>
  Buffer.byteLength(name) + 1 + Buffer.byteLength(value)
