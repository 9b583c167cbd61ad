/**
 * `taskmill up`: starts the control service, which starts the runtime service and looks after it (`--with-runtime`).
 *
 * Both listen on 127.0.0.1, or with `--socket` on Unix sockets, and require a token. Control listens once the runtime
 * service is ready, so one wait serves for both. The record is written before the wait: if the client is killed meanwhile,
 * `taskmill down` still finds them.
 */
import { closeSync, existsSync, ftruncateSync, openSync } from 'node:fs'
import { resolve } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import { replaceFileNow } from '../../shared/files/atomic-file.ts'
import { MAX_SOCKET_PATH_BYTES } from '../../shared/files/socket-file.ts'
import { madeToken } from '../../shared/http/made-token.ts'
import { socketPathOf, socketUrl } from '../../shared/http/socket-address.ts'
import { tokensText } from '../../shared/http/token-entries.ts'
import { findSibling, siblingNotFound } from '../../shared/process/sibling.ts'
import { unlessAborted } from '../../shared/process/unless-aborted.ts'
import { VERSION } from '../../shared/process/version.ts'
import { formatDuration } from '../../shared/settings/duration.ts'
import {
  lastServices,
  makeOwnPaths,
  newRecord,
  type OwnPaths,
  type OwnServices,
  ownServices,
  type ServicesRecord,
  unrecordedControl,
  writeRecord,
} from '../own-services/record.ts'
import { type Environment, onePerUser } from '../own-services/state-dir.ts'
import { tokenFileFault } from '../own-services/token-file.ts'
import { type DetachedProcess, startDetached } from './detached.ts'
import { endServices } from './down.ts'
import { type Foreground, startInForeground } from './foreground.ts'
import { freePort, HOST, type PortWish, portOf } from './ports.ts'
import { readiness } from './readiness.ts'

/** Ports to prefer: those of the specification. */
export const PREFERRED = { control: 8080, runtime: 18080 } as const

/** Starts before we give up, if others take the ports that we picked. */
const MAX_STARTS = 3

export interface UpOptions {
  /** Undefined: the port of the last start, else the usual one, else any free one. */
  readonly port: number | undefined
  readonly runtimePort: number | undefined
  /** Shell tasks may start any program. */
  readonly isShellOpen: boolean
  /** Directory of schedules, from the root. */
  readonly schedulesDir: string | undefined
  /** Directory of the secrets of tasks, from the root. Undefined: that of the state directory. */
  readonly secretsDir: string | undefined
  /** Prints the secrets that are in no file; empty if nothing does. */
  readonly secretCommand: string
  /** Listen on Unix sockets instead of ports. */
  readonly isOnSocket: boolean
  /** Milliseconds in which the services have to become ready. */
  readonly timeoutMs: number
  readonly isForeground: boolean
  readonly env: Environment
  /** Aborted when the client is told to stop. The start is undone then. */
  readonly interruption: AbortSignal
}

export interface Up {
  readonly services: OwnServices
  /** False if they ran already. */
  readonly isStarted: boolean
  /** With `isForeground`. */
  readonly foreground?: Foreground
}

/** Returns once both services are ready. Throws if they cannot be started; then none of them is left. */
export const up = (options: UpOptions): Promise<Up> =>
  onePerUser(options.env, options.timeoutMs, async () => {
    const running = ownServices(options.env)
    return running === undefined ? start(options) : { services: await again(running, options), isStarted: false }
  })

/** The services that run already, once they are ready. */
async function again(services: OwnServices, options: UpOptions): Promise<OwnServices> {
  const { port, runtimePort, isShellOpen, isOnSocket, timeoutMs, isForeground } = options
  const where = `taskmill runs already at ${services.url} (pid ${services.pid})`
  if (isForeground) throw new Error(`${where}, in the background or in another terminal: end it with taskmill down`)
  const isOther = (named: number | undefined, url: string) => named !== undefined && portOf(url) !== named
  const isElsewhere = isOnSocket && socketPathOf(services.url) === undefined
  if (isElsewhere || isOther(port, services.url) || isOther(runtimePort, services.runtime_url)) {
    throw new Error(`${where}, its runtime service at ${services.runtime_url}: end it with taskmill down first`)
  }
  if (isShellOpen && services.shell !== 'open')
    throw new Error(`${where}, without --shell open: end it with taskmill down first`)
  if (options.schedulesDir !== undefined && services.schedules_dir !== options.schedulesDir)
    throw new Error(`${where}, without --schedules-dir ${options.schedulesDir}: end it with taskmill down first`)
  if (options.secretsDir !== undefined && services.secrets_dir !== options.secretsDir)
    throw new Error(`${where}, without --secrets-dir ${options.secretsDir}: end it with taskmill down first`)
  if (options.secretCommand !== '' && services.secret_command !== options.secretCommand)
    throw new Error(`${where}, without --secret-command ${options.secretCommand}: end it with taskmill down first`)
  const { last } = await readiness(controlOf(services), undefined, performance.now() + timeoutMs)
  if (last.outcome === 'ready') return services
  throw new Error(`${where}, but is not ready: ${last.fault} (end it with taskmill down, then start it again)`)
}

async function start(options: UpOptions): Promise<Up> {
  const unrecorded = unrecordedControl(options.env)
  if (unrecorded !== undefined) throw new Error(`${describeUnrecorded(unrecorded)}: taskmill down ends it`)
  const program = foundPrograms(options.env)
  const paths = makeOwnPaths(options.env)
  const token = ownToken(paths)
  const last = lastServices(options.env)
  for (let starts = 1; ; starts++) {
    const urls = options.isOnSocket ? socketUrls(paths) : portUrls(options, last)
    const result = await startOnce({ program, paths, urls, options })
    if (typeof result !== 'string') return { services: { ...result.record, token }, isStarted: true, ...result }
    if (starts === MAX_STARTS || !result.includes('the address is in use')) {
      throw new Error(`the services did not start: ${result}`)
    }
  }
}

export const describeUnrecorded = ({ pid }: { readonly pid: number }): string =>
  `a control service (pid ${pid}) runs with the data of taskmill up, but not as the last one that was started`

interface Start {
  readonly program: string
  readonly paths: OwnPaths
  /** Base URLs. */
  readonly urls: { readonly control: string; readonly runtime: string }
  readonly options: UpOptions
}

/** The record of the services once they are ready, or why they are not; then they have been ended. */
async function startOnce(
  request: Start,
): Promise<{ readonly record: ServicesRecord; readonly foreground?: Foreground } | string> {
  const { paths, urls, options } = request
  const { env, timeoutMs, interruption } = options
  const deadline = performance.now() + timeoutMs
  const secretsDir = secretsDirOf(request)
  const tokensFile = tokensFileOf(request)
  const { process: child, foreground } = startProcess(request, secretsDir, tokensFile)
  const record = newRecord(child.pid, {
    url: urls.control,
    runtime_url: urls.runtime,
    version: VERSION,
    started_at: new Date().toISOString(),
    ...(options.isShellOpen && { shell: 'open' }),
    ...(options.schedulesDir !== undefined && { schedules_dir: options.schedulesDir }),
    ...(secretsDir !== '' && { secrets_dir: secretsDir }),
    tokens_file: tokensFile,
    ...(options.secretCommand !== '' && { secret_command: options.secretCommand }),
    cwd: process.cwd(),
  })
  try {
    writeRecord(paths.record, record)
    const ready = readiness(controlOf(record), child.ended, deadline)
    const { last, exitReport } = await unlessAborted(ready, interruption, () => interruption.reason as Error)
    if (exitReport !== undefined) return exitReport
    if (last.outcome === 'ready') return { record, ...(foreground !== undefined && { foreground }) }
    await endServices(record, env)
    return `not ready within ${formatDuration(timeoutMs)} (${last.fault}); its log is ${paths.log}`
  } catch (error) {
    await endServices(record, env)
    throw error
  }
}

/** The own directory exists by now, so that a secret that is set later needs no restart. Empty: systemd has the secrets. */
const secretsDirOf = ({ paths, options: { secretsDir, env } }: Start): string =>
  secretsDir ?? (env.CREDENTIALS_DIRECTORY ? '' : paths.secrets)

/** From the root. Ours exists by now, so that a token that is made later needs no restart. */
function tokensFileOf({ paths, options: { env } }: Start): string {
  if (env.SERVICE_TOKENS_FILE) return resolve(env.SERVICE_TOKENS_FILE)
  if (!existsSync(paths.tokens)) replaceFileNow(paths.tokens, tokensText([]))
  return paths.tokens
}

function startProcess(
  { program, paths, urls, options }: Start,
  secretsDir: string,
  tokensFile: string,
): {
  readonly process: DetachedProcess
  readonly foreground?: Foreground
} {
  const { env, isShellOpen, isForeground, schedulesDir = '', secretCommand } = options
  // A token of the caller is for other services.
  const { SERVICE_TOKEN: _, SERVICE_RUNTIME_TOKEN: __, ...rest } = env
  const others = {
    ...rest,
    SERVICE_SHELL_POLICY: isShellOpen ? 'open' : '',
    SERVICE_SCHEDULES_DIR: schedulesDir,
    SERVICE_SECRETS_DIR: secretsDir,
    SERVICE_TOKENS_FILE: tokensFile,
    SERVICE_SECRET_COMMAND: secretCommand,
  }
  const command = [
    ...[program, '--addr', urls.control.replace('http://', ''), '--data-dir', paths.data, '--token-file', paths.token],
    ...['--with-runtime', '--runtime-url', urls.runtime],
    ...(isForeground ? [] : ['--log-file', paths.log]),
  ]
  try {
    if (isForeground) {
      const foreground = startInForeground(command, others)
      return { process: foreground, foreground }
    }
    const output = openSync(paths.output, 'a+', 0o600)
    try {
      ftruncateSync(output, 0)
      return { process: startDetached(command, { env: others, output }) }
    } catch (error) {
      closeSync(output)
      throw error
    }
  } catch (error) {
    throw new Error(`cannot start ${program}: ${messageOf(error)}`)
  }
}

export const controlOf = ({ url }: Pick<ServicesRecord, 'url'>) =>
  ({ baseUrl: url, path: '/readyz', token: '' }) as const
export const runtimeOf = ({ runtime_url }: Pick<ServicesRecord, 'runtime_url'>) =>
  ({ baseUrl: runtime_url, path: '/readyz', token: '' }) as const

/** The path of the control service. Throws if it or the runtime service is missing. */
function foundPrograms({ PATH }: Environment): string {
  const missing = PROGRAMS.filter((name) => findSibling(name, PATH) === null)
  if (missing.length === 0) return findSibling(PROGRAMS[0], PATH)!
  throw new Error(`${missing.map(siblingNotFound).join('; ')} (install the three executables into one directory)`)
}

export const PROGRAMS = ['taskmill-control', 'taskmill-runtime'] as const

/** The token that callers send. Made by the first start. */
function ownToken({ token: path }: OwnPaths): string {
  const fault = tokenFileFault(path)
  if (fault !== undefined) throw new Error(`${fault.what}: ${fault.remedy}`)
  return madeToken(path, {
    owner: 'the services',
    remedy: 'make room, or set XDG_STATE_HOME',
    maker: 'the next taskmill up',
  })
}

function portUrls({ port, runtimePort }: UpOptions, last: ServicesRecord | undefined): Start['urls'] {
  const preferred = [portOf(last?.url), PREFERRED.control].filter((one) => one !== undefined)
  const control = freeOrRefuse('--port', { named: port, preferred }, runtimePort === undefined ? [] : [runtimePort])
  const preferredByRuntime = [portOf(last?.runtime_url), PREFERRED.runtime].filter((one) => one !== undefined)
  const runtime = freeOrRefuse('--runtime-port', { named: runtimePort, preferred: preferredByRuntime }, [control])
  return { control: `http://${HOST}:${control}`, runtime: `http://${HOST}:${runtime}` }
}

function socketUrls({ sockets: { control, runtime } }: OwnPaths): Start['urls'] {
  const bytes = Math.max(Buffer.byteLength(control), Buffer.byteLength(runtime))
  if (bytes <= MAX_SOCKET_PATH_BYTES) return { control: socketUrl(control), runtime: socketUrl(runtime) }
  throw new Error(
    `${runtime} has ${bytes} bytes, and the path of a socket can have at most ${MAX_SOCKET_PATH_BYTES} (set XDG_STATE_HOME to a shorter path, or leave --socket out)`,
  )
}

function freeOrRefuse(flag: string, wish: PortWish, taken: readonly number[]): number {
  const port = freePort(wish, taken)
  if (port !== undefined) return port
  throw new Error(`port ${wish.named} on ${HOST} is not free (give another with ${flag}, or none to have one chosen)`)
}
