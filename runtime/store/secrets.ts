/**
 * The secrets of tasks: one file each, in a directory of the operator. Nothing keeps their values: they are read when a task
 * is submitted, to check them, and again when it starts.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/errors.ts'
import {
  bytesTogether,
  type Execution,
  MAX_STRING_BYTES,
  MAX_STRINGS_BYTES,
  variableBytes,
} from '../../shared/runtime-request/execution.ts'
import type { SecretNames } from '../../shared/runtime-request/secrets.ts'

/** Mode bits of a file that others can read or change. The group may read it, as systemd and Kubernetes arrange it. */
const OPEN_TO_OTHERS = 0o027

/** A secret that a task cannot have. The message has names only. */
export class SecretFault extends Error {
  override name = 'SecretFault'
}

export class Secrets {
  readonly #directory: string

  /** Absolute; empty for a service without secrets. */
  constructor(directory: string) {
    this.#directory = directory
  }

  /**
   * Variables with the values of the secrets that `names` gives them, if a program takes them together with its `execution`.
   * Throws `SecretFault`.
   */
  variables(names: SecretNames, execution: Execution): Record<string, string> {
    const values = Object.fromEntries(
      Object.entries(names).map(([variable, name]) => [variable, this.#valueFor(variable, name)]),
    )
    const bytes = bytesTogether(execution, values)
    if (bytes <= MAX_STRINGS_BYTES) return values
    throw new SecretFault(
      `execution and secrets have ${bytes} bytes of arguments and environment and a program takes at most ${MAX_STRINGS_BYTES}`,
    )
  }

  #valueFor(variable: string, name: string): string {
    const refuse = (why: string) => new SecretFault(`secrets.${variable}: ${why}`)
    if (this.#directory === '') throw refuse('this runtime service has no secrets (start it with --secrets-dir)')
    const fd = this.#open(name, refuse)
    try {
      const fault = faultOf(fstatSync(fd))
      if (fault !== undefined) throw refuse(`the secret ${name} ${fault}`)
      // Files of one line usually end with a line break, which is no part of the secret.
      const value = readFileSync(fd, 'utf8').replace(/\r?\n$/, '')
      if (value.includes('\0') || value.includes('\ufffd')) throw refuse(`the secret ${name} is no text`)
      const bytes = variableBytes(variable, value)
      if (bytes > MAX_STRING_BYTES) {
        throw refuse(`has ${bytes} bytes with its name and a program takes at most ${MAX_STRING_BYTES} in one string`)
      }
      return value
    } finally {
      closeSync(fd)
    }
  }

  #open(name: string, refuse: (why: string) => SecretFault): number {
    try {
      return openSync(join(this.#directory, name), constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      const code = systemCodeOf(error)
      if (code === 'ENOENT') throw refuse(`there is no secret ${name} (no such file in --secrets-dir)`)
      throw refuse(`the secret ${name} cannot be read: ${code}`)
    }
  }
}

function faultOf(status: Stats): string | undefined {
  if (!status.isFile()) return 'is not a file'
  if ((status.mode & OPEN_TO_OTHERS) !== 0) return 'is open to other users (chmod 600 its file)'
  if (status.size > MAX_STRING_BYTES) return `has ${status.size} bytes (at most ${MAX_STRING_BYTES})`
  return undefined
}
