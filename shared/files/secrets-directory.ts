/**
 * The secrets of a service: one file each, in a directory of the operator. Nothing keeps their values: they are read
 * anew whenever a task starts. A secret without a file is what the command of `--secret-command` prints (secret-command.ts).
 *
 * Whoever may write the directory or a file in it decides what tasks get, and whoever may read it has all secrets. So
 * both must belong to root or to the user of the service, and be closed to others. The group may read: systemd and
 * Kubernetes grant access so. A link may not lead out of the directory. A file of the service itself, such as its
 * token, is no secret of tasks.
 */
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { systemCodeOf, UsageError } from '../contract/errors.ts'
import { unlessAborted } from '../process/unless-aborted.ts'
import { isSecretName } from '../request/secrets.ts'
import { isWithin } from './is-within.ts'
import { MAX_KEPT_SECRETS, SecretCommand, type SecretCommandSettings } from './secret-command.ts'
import { type SecretAsker, type SecretRules, whyForProcesses, whyOfOthers } from './secret-rules.ts'

/** Bytes of one secret. */
export const MAX_SECRET_BYTES = 1024 * 1024

/** Maximum reads of a file that changes meanwhile. */
const MAX_READS = 3

/** Mode bits with which others can read or change, or the group can change. */
const OPEN_TO_OTHERS = 0o027

/** A secret that a task cannot have. The message has names only. */
export class SecretFault extends Error {
  override name = 'SecretFault'
}

export interface SecretsSettings {
  /** `--secrets-dir`; empty if it is not given. */
  readonly secretsDir: string
  /** The directory of systemd credentials (`CREDENTIALS_DIRECTORY`). Counts without `--secrets-dir`. */
  readonly credentialsDir: string | undefined
  /** Files of the service itself, by the flags that name them; empty where there is none. */
  readonly ownFiles: Readonly<Record<string, string>>
  /** Further files that no task gets. */
  readonly otherFiles?: readonly string[]
  /** Who may use which secrets. Default: every task that takes secrets. */
  readonly rules?: SecretRules | undefined
  /** Prints the secrets that are in no file. `command` is empty if there is none. */
  readonly command?: SecretCommandSettings | undefined
}

/**
 * The secrets of a service. Throws `UsageError` if `--secrets-dir` or `--secret-command` cannot be used, or the directory holds
 * a file of the service. Systemd credentials are checked when a secret is read: nobody asked for them to be secrets of tasks.
 */
export function openSecrets({ secretsDir, ownFiles, rules, ...settings }: SecretsSettings): SecretsDirectory {
  const { credentialsDir = '', otherFiles = [] } = settings
  const command = settings.command?.command ? new SecretCommand(settings.command, MAX_SECRET_BYTES) : undefined
  const commandFault = command?.fault()
  if (commandFault !== undefined) throw new UsageError(`--secret-command: ${commandFault}`)
  const kept = [...Object.values(ownFiles).filter((path) => path !== ''), ...otherFiles]
  if (secretsDir === '') return new SecretsDirectory(credentialsDir, kept, rules, command)
  for (const [flag, path] of Object.entries(ownFiles)) {
    if (path === '' || !liesIn(path, secretsDir)) continue
    throw new UsageError(`--${flag} ${path} lies in --secrets-dir, where every task could ask for it`)
  }
  const secrets = new SecretsDirectory(resolve(secretsDir), kept, rules, command)
  const fault = secrets.fault()
  if (fault !== undefined) throw new UsageError(`--secrets-dir ${secretsDir} ${fault}`)
  return secrets
}

/** Whether a file is in a directory by its name, or by where a link leads. */
const liesIn = (path: string, directory: string): boolean =>
  isWithin(resolve(path), resolve(directory)) || isWithin(realPath(path), realPath(directory))

export class SecretsDirectory {
  /** Absolute; empty for a service whose secrets are in no files. */
  readonly path: string
  readonly rules: SecretRules | undefined
  readonly #kept: readonly string[]
  readonly #command: SecretCommand | undefined

  /** `kept` are paths of files in it that no task gets. */
  constructor(path: string, kept: readonly string[] = [], rules?: SecretRules, command?: SecretCommand) {
    this.path = path
    this.#kept = kept
    this.rules = rules
    this.#command = command
  }

  /** Why no secret can be read, with the remedy; undefined if they can. */
  fault(): string | undefined {
    try {
      const status = statSync(this.path, { bigint: true })
      if (!status.isDirectory()) return 'is no directory'
      return accessFault(status, 'chmod 700 it')
    } catch (error) {
      const code = systemCodeOf(error)
      return code === 'ENOENT' ? 'does not exist (mkdir -m 700 it)' : `cannot be read: ${code}`
    }
  }

  /** The names of all secrets with a file; what is wrong with one shows when it is read. */
  names(): ReadonlySet<string> {
    if (this.path === '') return new Set()
    try {
      return new Set(readdirSync(this.path).filter(isSecretName))
    } catch {
      return new Set()
    }
  }

  /**
   * The fault of a request of `asker` for the secret `name`, of which `names` exist. The text follows `secrets.X: `. Only the
   * command knows which secrets it has, so there is no fault of theirs.
   */
  whyNot(name: string, names: ReadonlySet<string>, asker: SecretAsker): string | undefined {
    // To a tenant, a secret of others is as one that is not there.
    if (names.has(name) || asker.tenantOnly || this.#isForCommand(name)) return this.whyDenied(name, asker)
    return this.#unknownText(name)
  }

  /** Whether another program may have the secret: a name with a first "-" would be an option of it. */
  #isForCommand(name: string): boolean {
    return this.#command !== undefined && isSecretName(name) && !name.startsWith('-')
  }

  #isOfCommand(name: string): boolean {
    if (!this.#isForCommand(name)) return false
    try {
      return this.path === '' || lstatSync(join(this.path, name), { throwIfNoEntry: false }) === undefined
    } catch {
      return false // `read` says why
    }
  }

  #unknownText(name: string): string {
    if (this.path === '' && this.#command === undefined) return NO_SECRETS
    if (this.#command === undefined) return `there is no secret ${name} (no such file in --secrets-dir)`
    return `there is no secret ${name} (no such file in --secrets-dir, and --secret-command takes no name that begins with "-")`
  }

  /** Whether reading a secret may need `ready` before. */
  get hasCommand(): boolean {
    return this.#command !== undefined
  }

  /**
   * Has the command print those of `names` that have no file and that `asker` may have. `read` finds them until the caller waits
   * for something else. Throws `SecretCommandFault`, `SecretFault`, and the reason of `signal`.
   */
  async ready(names: Iterable<string>, asker: SecretAsker, signal?: AbortSignal): Promise<void> {
    if (this.#command === undefined) return
    const wanted = [...new Set(names)].filter(
      (name) => this.#isOfCommand(name) && this.whyDenied(name, asker) === undefined,
    )
    if (wanted.length > MAX_KEPT_SECRETS)
      throw new SecretFault(`needs ${wanted.length} secrets of --secret-command (at most ${MAX_KEPT_SECRETS})`)
    const ready = this.#command.ready(wanted)
    await (signal === undefined ? ready : unlessAborted(ready, signal, () => signal.reason as Error))
  }

  /** Why `asker` may not have the secret `name`, if there is one; undefined if it may. */
  whyDenied(name: string, asker: SecretAsker): string | undefined {
    if (this.rules !== undefined) return this.rules.whyDenied(name, asker)
    if (asker.tenantOnly) return whyOfOthers(name, asker)
    return (
      asker.to && whyForProcesses(name, `start the service with --secrets-rules FILE, whose table [${name}] has hosts`)
    )
  }

  /**
   * The bytes of a secret as they are in its file, or as the command printed them (`ready`). Throws `SecretFault`, whose message
   * continues `secrets.X: `.
   */
  read(name: string, asker: SecretAsker): Buffer {
    if (this.path === '' && !this.#isForCommand(name)) throw new SecretFault(this.#unknownText(name))
    const denied = this.whyDenied(name, asker)
    if (denied !== undefined) throw new SecretFault(denied)
    const printed = this.#isOfCommand(name) ? this.#command?.value(name) : undefined
    if (printed !== undefined) return printed
    if (this.path === '') throw new SecretFault(this.#unknownText(name))
    const fault = this.fault()
    if (fault !== undefined) throw new SecretFault(`the directory of the secrets ${fault}`)
    const fd = this.#open(name)
    try {
      return contentOf(fd, name)
    } catch (error) {
      throw error instanceof SecretFault ? error : unreadable(name, error)
    } finally {
      closeSync(fd)
    }
  }

  #open(name: string): number {
    try {
      const path = realpathSync(join(this.path, name))
      if (!isWithin(path, realpathSync(this.path))) {
        throw new SecretFault(`the secret ${name} is a link that leads out of the directory of the secrets`)
      }
      if (this.#kept.some((kept) => path === realPath(kept))) {
        throw new SecretFault(`the secret ${name} is a file of the service itself, which no task gets`)
      }
      return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    } catch (error) {
      if (error instanceof SecretFault) throw error
      if (systemCodeOf(error) === 'ENOENT') throw new SecretFault(this.#unknownText(name))
      throw unreadable(name, error)
    }
  }
}

const NO_SECRETS = 'this service has no secrets (start it with --secrets-dir)'

const unreadable = (name: string, error: unknown) =>
  new SecretFault(`the secret ${name} cannot be read: ${systemCodeOf(error) ?? 'unknown error'}`)

function contentOf(fd: number, name: string): Buffer {
  for (let reads = 0; reads < MAX_READS; reads++) {
    const before = fstatSync(fd, { bigint: true })
    const fault = fileFault(before)
    if (fault !== undefined) throw new SecretFault(`the secret ${name} ${fault}`)
    const bytes = readFrom(fd, Number(before.size))
    // File systems note times in steps of milliseconds, so the times alone do not tell. A writer that pauses is not found.
    if (bytes === undefined || !readFrom(fd, bytes.length)?.equals(bytes)) continue
    const after = fstatSync(fd, { bigint: true })
    if (after.size === before.size && after.mtimeNs === before.mtimeNs) return bytes
  }
  throw new SecretFault(`the secret ${name} changes while it is read (write it to another file and rename that)`)
}

/** All bytes of a file of `size` bytes; undefined if it has not that size. */
function readFrom(fd: number, size: number): Buffer | undefined {
  const bytes = Buffer.alloc(size + 1)
  let length = 0
  for (;;) {
    const count = readSync(fd, bytes, length, bytes.length - length, length)
    length += count
    if (count === 0 || length === bytes.length) break
  }
  return length === size ? bytes.subarray(0, size) : undefined
}

/** Why no task gets the secret whose file has this status, with the remedy. */
export function fileFault(status: BigIntStats): string | undefined {
  if (!status.isFile()) return 'is not a file'
  if (status.size === 0n) return 'is empty'
  if (status.size > BigInt(MAX_SECRET_BYTES)) return `has ${status.size} bytes (at most ${MAX_SECRET_BYTES})`
  return accessFault(status, 'chmod 600 its file')
}

function accessFault({ mode, uid }: BigIntStats, remedy: string): string | undefined {
  if ((Number(mode) & OPEN_TO_OTHERS) !== 0) return `is open to other users (${remedy})`
  const own = process.geteuid?.() ?? 0
  if (uid === 0n || uid === BigInt(own)) return undefined
  return `belongs to user ${uid} (chown it to user ${own} of the service, or to root)`
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
