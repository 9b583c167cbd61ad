/**
 * The services that `taskmill up` started for this user.
 *
 * Everything is in `up` of the state directory: `services.json` says where the services are and which process they are,
 * `data` holds their data and the token. The file stays when they have ended: the next start takes the same ports, so
 * that the configurations of agents remain right. A process counts only while it is the one that was started. The token of
 * `up` is sent only to the process that `up` started; `SERVICE_TOKEN` goes to whichever address is called.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import { replaceFileNow } from '../../shared/files/atomic-file.ts'
import { isDirectoryLocked, LOCK_FILES } from '../../shared/files/directory-lock.ts'
import { socketPathOf } from '../../shared/http/socket-address.ts'
import {
  identify,
  isProcessIdentity,
  isStillThere,
  isThere,
  type ProcessIdentity,
} from '../../shared/process/processes.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { type Environment, privateDir, serviceDir, stateDirPath } from './state-dir.ts'

/** Version of the form of `services.json`. */
const FORMAT = 1

/** What is known of the services, running or not. */
export interface ServicesRecord {
  readonly format: typeof FORMAT
  /** Base URLs without a final slash, or `unix:` addresses. */
  readonly url: string
  readonly runtime_url: string
  readonly pid: number
  /** Absent where the system does not tell (macOS). */
  readonly process?: ProcessIdentity
  readonly version: string
  readonly started_at: string
  /** Working directory of the services. */
  readonly cwd: string
  /** Shell tasks may start any program. */
  readonly shell?: 'open'
  /** Directory of schedules, from the root. */
  readonly schedules_dir?: string
  /** Directory of the secrets of tasks, from the root. Absent if they are systemd credentials, or an earlier version started them. */
  readonly secrets_dir?: string
  /** The file with the tokens of callers, from the root. Absent if an earlier version started them. */
  readonly tokens_file?: string
  /** Prints the secrets that are in no file. */
  readonly secret_command?: string
}

/** Running services of this user. */
export interface OwnServices extends ServicesRecord {
  /** Undefined if the file is gone. */
  readonly token: string | undefined
}

export interface OwnPaths {
  readonly record: string
  readonly data: string
  readonly token: string
  /** The file with the tokens of callers, unless another is named. */
  readonly tokens: string
  /** Directory of the secrets of tasks, unless another is named. */
  readonly secrets: string
  /** The sockets of `up --socket`. Sandboxes hide the data directory, so that tasks in them cannot connect. */
  readonly sockets: { readonly control: string; readonly runtime: string }
  readonly log: string
  /** Standard output and error: what precedes the log, and what a crash prints. */
  readonly output: string
}

/** Where the services keep their files. Makes nothing. */
export function ownPaths(env: Environment): OwnPaths {
  const dir = join(stateDirPath(env), 'up')
  const data = join(dir, 'data')
  return {
    record: join(dir, 'services.json'),
    data,
    token: join(data, 'token'),
    tokens: join(data, 'tokens.json'),
    secrets: join(dir, 'secrets'),
    sockets: { control: join(data, 'control.sock'), runtime: join(data, 'runtime.sock') },
    log: join(dir, 'taskmill.log'),
    output: join(dir, 'output.log'),
  }
}

/** The same, with private directories. Throws if they cannot be made. */
export function makeOwnPaths(env: Environment): OwnPaths {
  const paths = ownPaths(env)
  try {
    serviceDir(env, 'up')
    privateDir(paths.data)
    privateDir(paths.secrets)
  } catch (error) {
    throw new Error(`cannot make a place for the data of the services: ${messageOf(error)} (set XDG_STATE_HOME)`)
  }
  return paths
}

/** The last services that were started, running or not. Undefined if there are none, or the file is not of this form. */
export function lastServices(env: Environment): ServicesRecord | undefined {
  const text = readOr(ownPaths(env).record)
  const record = text === undefined ? undefined : jsonOrUndefined(text)
  return isRecord(record) ? record : undefined
}

/** The services if they run. */
export function ownServices(env: Environment): OwnServices | undefined {
  const record = lastServices(env)
  if (record === undefined || !isRunning(record, env)) return undefined
  return { ...record, token: readOr(ownPaths(env).token)?.trim() || undefined }
}

/** Whether the process is still the one that was started. */
export function isRunning(
  { process: identity, pid }: Pick<ServicesRecord, 'pid' | 'process'>,
  env: Environment,
): boolean {
  if (identity !== undefined) return isStillThere(identity)
  return isThere(pid) && isDirectoryLocked(ownPaths(env).data, LOCK_FILES.control)
}

/**
 * The control service in the data directory that is not in the record: the client that started it was killed before it wrote
 * the record, or somebody started it by hand. Undefined if there is none, or the system does not tell.
 */
export function unrecordedControl(env: Environment): ProcessIdentity | undefined {
  const { data } = ownPaths(env)
  if (ownServices(env) !== undefined || !isDirectoryLocked(data, LOCK_FILES.control)) return undefined
  const pid = Number(readOr(join(data, LOCK_FILES.control)))
  const identity = Number.isSafeInteger(pid) && pid > 1 ? identify(pid) : undefined
  // The pid may be that of a holder before. A process that still holds the lock has written its own.
  return identity !== undefined && isDirectoryLocked(data, LOCK_FILES.control) ? identity : undefined
}

/** The record of services that have just been started as process `pid`. */
export function newRecord(pid: number, others: Omit<ServicesRecord, 'format' | 'pid' | 'process'>): ServicesRecord {
  const identity = identify(pid)
  return { format: FORMAT, pid, ...(identity !== undefined && { process: identity }), ...others }
}

export const writeRecord = (path: string, record: ServicesRecord): void =>
  replaceFileNow(path, `${JSON.stringify(record, null, 2)}\n`)

const isRecord = (value: unknown): value is ServicesRecord =>
  isObject(value) &&
  value.format === FORMAT &&
  isBaseUrl(value.url) &&
  isBaseUrl(value.runtime_url) &&
  Number.isInteger(value.pid) &&
  (value.process === undefined || isProcessIdentity(value.process)) &&
  [value.version, value.started_at, value.cwd].every((text) => typeof text === 'string')

const isBaseUrl = (value: unknown): boolean =>
  typeof value === 'string' && (/^http:\/\/127\.0\.0\.1:\d{1,5}$/.test(value) || socketPathOf(value) !== undefined)

function readOr(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // missing, or not ours to read
  }
}
