/**
 * Secrets that a command of the operator prints, so that any vault can have them: `--secret-command "pass show {name}"`.
 *
 * The command gets the environment of the service and no shell. What it prints is the value, as the content of a file would
 * be. Values are kept in memory for a time, so that a graph of many tasks asks the vault once. A name runs once at a time:
 * others who need it wait for that run. A run that fails keeps nothing, so the next attempt runs it again. What the command
 * says on standard error goes nowhere, because it may hold a value.
 */
import { messageOf, systemCodeOf, UsageError } from '../contract/errors.ts'
import type { SecretCommandDetails } from '../request/secrets.ts'
import { formatDuration } from '../settings/duration.ts'

/** Commands that run at a time, for different names. */
export const MAX_SECRET_COMMANDS = 4

/** Secrets whose values are kept, and that a task or a request may have. */
export const MAX_KEPT_SECRETS = 256

/** Milliseconds between TERM and KILL of a command that takes too long. */
const KILL_GRACE_MS = 500

const NAME = '{name}'

/** The command did not print a secret; another attempt may have it. The message has names only. */
export class SecretCommandFault extends Error {
  override name = 'SecretCommandFault'
  readonly details: SecretCommandDetails

  constructor(secret: string, message: string, exitCode?: number) {
    super(`the secret ${secret}: ${message}`)
    this.details = { step: 'secret_command', secret, ...(exitCode !== undefined && { exit_code: exitCode }) }
  }
}

export interface SecretCommandSettings {
  /** `--secret-command`: a program and its arguments, in which `{name}` stands for the name of a secret. */
  readonly command: string
  /** Milliseconds for which a value is kept. */
  readonly ttlMs: number
  /** Milliseconds after which the command is ended. */
  readonly timeoutMs: number
  /** The whole environment of the command. */
  readonly env: Readonly<Record<string, string | undefined>>
}

interface Kept {
  readonly value: Buffer
  readonly readMs: number
}

/** Process groups of commands of this process. */
const running = new Set<number>()
let isEndHeard = false

export class SecretCommand {
  readonly #words: readonly [string, ...string[]]
  readonly #settings: SecretCommandSettings
  readonly #maxBytes: number
  /** By name, oldest first. */
  readonly #kept = new Map<string, Kept>()
  readonly #runs = new Map<string, Promise<Kept>>()
  readonly #waiting: (() => void)[] = []
  #running = 0

  /** `maxBytes` are those of one value. Throws `UsageError`. */
  constructor(settings: SecretCommandSettings, maxBytes: number) {
    this.#words = commandWords(settings.command)
    this.#settings = settings
    this.#maxBytes = maxBytes
  }

  /** Why it cannot run, with the remedy; undefined if its program is there. */
  fault(): string | undefined {
    const [program] = this.#words
    if (Bun.which(program, { PATH: this.#settings.env.PATH ?? '' }) !== null) return undefined
    return `${program} is no program (give its path, or have it in PATH of the service)`
  }

  /** The value of a secret, if it is kept. */
  value(name: string): Buffer | undefined {
    return this.#kept.get(name)?.value
  }

  /** Resolves once all values are kept, at least until the caller waits for something else. Throws `SecretCommandFault`. */
  async ready(names: readonly string[]): Promise<void> {
    const found = await Promise.all(
      names.map(async (name) => [name, this.#kept.get(name) ?? (await this.#run(name))] as const),
    )
    // The values of the first names may have gone while the last ones came.
    for (const [name, kept] of found) if (!this.#kept.has(name)) this.#keep(name, kept)
  }

  #keep(name: string, kept: Kept): void {
    this.#kept.delete(name)
    this.#kept.set(name, kept)
    const forget = () => this.#kept.get(name) === kept && this.#kept.delete(name)
    setTimeout(forget, Math.max(0, kept.readMs + this.#settings.ttlMs - performance.now())).unref()
    if (this.#kept.size > MAX_KEPT_SECRETS) setTimeout(() => this.#forgetOldest()).unref()
  }

  #forgetOldest(): void {
    for (const name of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT_SECRETS) return
      this.#kept.delete(name)
    }
  }

  #run(name: string): Promise<Kept> {
    const run = this.#runs.get(name) ?? this.#inTurn(name).finally(() => this.#runs.delete(name))
    this.#runs.set(name, run)
    return run
  }

  async #inTurn(name: string): Promise<Kept> {
    if (this.#running === MAX_SECRET_COMMANDS) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    try {
      const kept = { value: await this.#execute(name), readMs: performance.now() }
      this.#keep(name, kept)
      return kept
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  async #execute(name: string): Promise<Buffer> {
    const { timeoutMs } = this.#settings
    const [program, ...args] = this.#words
    const fault = (how: string, exitCode?: number) =>
      new SecretCommandFault(name, `${program} of --secret-command ${how}`, exitCode)
    const { startGroup } = await import('../process/process-group.ts') // most services have no command
    const start = () => {
      try {
        const command = [program, ...args.map((arg) => arg.replaceAll(NAME, name))] as const
        const env = { ...this.#settings.env } as Record<string, string>
        return startGroup({ command, env, maxStreamBytes: this.#maxBytes, killGraceMs: KILL_GRACE_MS })
      } catch (error) {
        throw fault(`cannot start: ${systemCodeOf(error) ?? messageOf(error)}`)
      }
    }
    const group = start()
    endWithService(group.pid)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      group.stop()
    }, timeoutMs)
    try {
      const { ending, stdout } = await group.finished
      const value = Buffer.from(group.stdout.read(0))
      if (isLate) throw fault(`has not ended within ${formatDuration(timeoutMs)}`)
      if (ending.signal !== undefined) throw fault(`was ended by ${ending.signal}`)
      if (ending.exitCode !== 0) throw fault(`ended with exit code ${ending.exitCode}`, ending.exitCode)
      if (stdout.truncated) throw fault(`printed more than ${this.#maxBytes} bytes`)
      if (value.length === 0) throw fault('printed nothing')
      return value
    } finally {
      clearTimeout(timer)
      running.delete(group.pid)
    }
  }
}

/** A command that hangs does not outlive a service that ends by itself. */
function endWithService(pid: number): void {
  if (!isEndHeard) process.once('exit', endRunning)
  isEndHeard = true
  running.add(pid)
}

function endRunning(): void {
  for (const pid of running) {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {} // it has just ended
  }
}

/** A word: bare characters, `\x`, `'as it is'`, `"with \" in it"`. */
const WORD = /(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/gs

const QUOTED = /\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"/gs

/** The program and its arguments in `text`, as a shell splits them that expands nothing. Throws `UsageError`. */
export function commandWords(text: string): readonly [string, ...string[]] {
  if (text.replace(WORD, '').trim() !== '') throw new UsageError('--secret-command has a quote or a \\ without its end')
  const words = (text.match(WORD) ?? []).map((word) =>
    word.replace(QUOTED, (_, bare?: string, single?: string, double?: string) =>
      double === undefined ? (bare ?? single ?? '') : double.replace(/\\(["\\$`])/g, '$1'),
    ),
  )
  const [program = '', ...args] = words
  if (program === '' || program.includes(NAME) || !args.some((arg) => arg.includes(NAME)))
    throw new UsageError('--secret-command needs a program, and {name} in an argument: "pass show {name}"')
  return [program, ...args]
}
