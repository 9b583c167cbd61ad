/**
 * The secrets of a service: one file each, in a directory of the operator. Nothing keeps their values: they are read
 * anew whenever a task starts.
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
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { systemCodeOf, UsageError } from '../contract/errors.ts'
import { isSecretName } from '../request/secrets.ts'
import { isWithin } from './is-within.ts'
import { type SecretAsker, type SecretRules, whyForProcesses } from './secret-rules.ts'

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
}

/**
 * The secrets of a service. Throws `UsageError` if `--secrets-dir` cannot be used, or holds a file of the service.
 * Systemd credentials are checked when a secret is read: nobody asked for them to be secrets of tasks.
 */
export function openSecrets({ secretsDir, credentialsDir = '', ownFiles, otherFiles = [], rules }: SecretsSettings) {
  const own = Object.values(ownFiles).filter((path) => path !== '')
  if (secretsDir === '') return new SecretsDirectory(credentialsDir, [...own, ...otherFiles], rules)
  for (const [flag, path] of Object.entries(ownFiles)) {
    if (path === '' || !liesIn(path, secretsDir)) continue
    throw new UsageError(`--${flag} ${path} lies in --secrets-dir, where every task could ask for it`)
  }
  const secrets = new SecretsDirectory(resolve(secretsDir), [...own, ...otherFiles], rules)
  const fault = secrets.fault()
  if (fault !== undefined) throw new UsageError(`--secrets-dir ${secretsDir} ${fault}`)
  return secrets
}

/** Whether a file is in a directory by its name, or by where a link leads. */
const liesIn = (path: string, directory: string): boolean =>
  isWithin(resolve(path), resolve(directory)) || isWithin(realPath(path), realPath(directory))

export class SecretsDirectory {
  /** Absolute; empty for a service without secrets. */
  readonly path: string
  readonly rules: SecretRules | undefined
  readonly #kept: readonly string[]

  /** `kept` are paths of files in it that no task gets. */
  constructor(path: string, kept: readonly string[] = [], rules?: SecretRules) {
    this.path = path
    this.#kept = kept
    this.rules = rules
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

  /** The names of all secrets; what is wrong with one shows when it is read. */
  names(): ReadonlySet<string> {
    if (this.path === '') return new Set()
    try {
      return new Set(readdirSync(this.path).filter(isSecretName))
    } catch {
      return new Set()
    }
  }

  /** The fault of a request of `asker` for the secret `name`, of which `names` exist. The text follows `secrets.X: `. */
  whyNot(name: string, names: ReadonlySet<string>, asker: SecretAsker): string | undefined {
    if (this.path === '') return NO_SECRETS
    return names.has(name) ? this.whyDenied(name, asker) : unknownText(name)
  }

  /** Why `asker` may not have the secret `name`, if there is one; undefined if it may. */
  whyDenied(name: string, asker: SecretAsker): string | undefined {
    if (this.rules !== undefined) return this.rules.whyDenied(name, asker)
    return (
      asker.to && whyForProcesses(name, `start the service with --secrets-rules FILE, whose table [${name}] has hosts`)
    )
  }

  /** The bytes of a secret as they are in its file. Throws `SecretFault`, whose message continues `secrets.X: `. */
  read(name: string, asker: SecretAsker): Buffer {
    if (this.path === '') throw new SecretFault(NO_SECRETS)
    const denied = this.whyDenied(name, asker)
    if (denied !== undefined) throw new SecretFault(denied)
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
      if (systemCodeOf(error) === 'ENOENT') throw new SecretFault(unknownText(name))
      throw unreadable(name, error)
    }
  }
}

const NO_SECRETS = 'this service has no secrets (start it with --secrets-dir)'

const unknownText = (name: string): string => `there is no secret ${name} (no such file in --secrets-dir)`

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
