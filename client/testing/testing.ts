/**
 * `taskmill/testing`: services of their own for tests, with Bun.
 *
 * A mill lives in a temporary directory: the files of its services, and the working directory of its tasks. At the end of
 * the block its processes are killed, those of its tasks too, and the directory is removed. If the test process is killed,
 * a shell that watches it does the same.
 */
import { mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { Taskmill } from '../client.ts'
import { findExecutable } from './executables.ts'
import { freePort } from './free-port.ts'
import { type LogLine, type ServiceCommand, startService, type TestService } from './service.ts'
import { sweep } from './sweep.ts'

/** The directory of the package. */
const PACKAGE = join(import.meta.dir, '../..')

/** The program that the shell runs. */
const HEIR = join(import.meta.dir, `heir${extname(import.meta.path)}`)

/** Ports that are tried for each service. Another process may take one meanwhile. */
const MAX_PORTS = 5

export interface MillOptions {
  /** Starts a runtime service as well. Default false: tasks of type `runtime` fail. */
  readonly runtime?: boolean | undefined
  /** Further flags of control, such as `['--max-concurrency', '1']`. */
  readonly flags?: readonly string[] | undefined
  readonly runtimeFlags?: readonly string[] | undefined
  /** Variables of the services, beside PATH. Tasks do not get them. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Token of the services. Default: a random one. */
  readonly token?: string | undefined
  /** Directory of the executables. Default: TASKMILL_BIN, else the package of this platform, else PATH. */
  readonly executables?: string | undefined
  /** Milliseconds for the start. Default 30000. */
  readonly startWithinMs?: number | undefined
}

/** Services of one test. */
export class Mill implements AsyncDisposable {
  /** A client with the address and the token of the mill. */
  readonly client: Taskmill
  readonly url: string
  readonly token: string
  /** Address of the runtime service, if there is one. */
  readonly runtimeUrl: string | undefined
  /** Working directory of control, and so of `shell` and `file` tasks. */
  readonly directory: string
  /** What the services have logged, the newest last; grows. */
  readonly log: readonly LogLine[]
  readonly #home: Home
  readonly #restart: (url: string) => Promise<TestService>
  #control: TestService

  constructor(
    home: Home,
    { control, runtimeUrl, token, log }: Services,
    restart: (url: string) => Promise<TestService>,
  ) {
    this.#home = home
    this.#control = control
    this.#restart = restart
    this.url = control.url
    this.token = token
    this.runtimeUrl = runtimeUrl
    this.directory = home.work
    this.log = log
    this.client = new Taskmill({ url: control.url, token })
  }

  /** Ends control, and starts it again with the same data and address. Default: as a crash would end it. */
  async restart(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#control.process.kill(signal)
    await this.#control.process.exited
    this.#control = await this.#restart(this.url)
  }

  /** Ends everything. Safe to call again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#home.leave()
  }
}

interface Services {
  readonly control: TestService
  readonly runtimeUrl: string | undefined
  readonly token: string
  readonly log: LogLine[]
}

const searchPath = () => process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin'

/** Settings that are the mill's own: it reads the addresses from the log. */
const OWN_SETTINGS = [
  ...['--addr', '--listen-addr', '--data-dir', '--runtime-url', '--log-level', '--token-file', '--with-runtime'],
  ...['SERVICE_ADDR', 'SERVICE_DATA_DIR', 'SERVICE_LOG_LEVEL', 'SERVICE_TOKEN'],
]

/** Throws `TypeError` for a setting that would make the mill unusable. */
function checkSettings({ flags = [], runtimeFlags = [], env = {} }: MillOptions): void {
  const names = [...flags, ...runtimeFlags].map((flag) => flag.replace(/^--?/, '--').replace(/=.*/, ''))
  const own = [...names, ...Object.keys(env)].find((name) => OWN_SETTINGS.includes(name))
  if (own !== undefined) throw new TypeError(`${own} cannot be set for a mill of a test, which sets it itself`)
}

/** Starts a mill, and resolves once it accepts graphs. Throws if an executable is missing or does not start. */
export const startTaskmill = (options: MillOptions = {}): Promise<Mill> => startOnPorts(options, freePort)

/** The same, on ports that `choosePort` returns. */
export async function startOnPorts(options: MillOptions, choosePort: typeof freePort): Promise<Mill> {
  checkSettings(options)
  const places = { directory: options.executables, env: process.env, own: PACKAGE }
  const control = findExecutable('taskmill-control', places)
  const runtime = options.runtime ? findExecutable('taskmill-runtime', places) : undefined
  const { token = crypto.randomUUID(), startWithinMs = 30_000, flags = [], runtimeFlags = [], env = {} } = options
  const home = await Home.make()
  const log: LogLine[] = []
  const variables = {
    PATH: searchPath(),
    TMPDIR: home.path,
    SERVICE_TOKEN: token,
    SERVICE_RUNTIME_TOKEN: token,
    ...env,
  }
  const common = { cwd: home.work, env: variables, log, startWithinMs }
  const controlAt = (address: string, runtimeUrl: string | undefined): ServiceCommand => ({
    ...{ ...common, name: 'control' },
    command: [
      ...[control, '--addr', address, '--data-dir', join(home.path, 'control'), '--kill-grace', '500ms'],
      ...(runtimeUrl === undefined ? [] : ['--runtime-url', runtimeUrl]),
      ...flags,
    ],
  })
  const runtimeAt = (address: string): ServiceCommand => ({
    ...{ ...common, name: 'runtime' },
    command: [
      // Cgroups would stay: they are no files of the directory.
      ...[runtime!, 'serve', '--listen-addr', address, '--data-dir', join(home.path, 'runtime'), '--disable-cgroup'],
      ...['--termination-grace-ms', '500', ...runtimeFlags],
    ],
  })
  try {
    const started = await bothStarted(controlAt, runtime === undefined ? undefined : runtimeAt, choosePort)
    const restart = (url: string) => startService(controlAt(new URL(url).host, started.runtimeUrl))
    return new Mill(home, { ...started, token, log }, restart)
  } catch (error) {
    await home.leave()
    throw error
  }
}

/** Starts both services at the same time. */
async function bothStarted(
  controlAt: (address: string, runtimeUrl: string | undefined) => ServiceCommand,
  runtimeAt: ((address: string) => ServiceCommand) | undefined,
  choosePort: typeof freePort,
): Promise<{ readonly control: TestService; readonly runtimeUrl: string | undefined }> {
  for (let tries = 1; ; tries++) {
    // The system assigns others, so that no connection takes it during a restart. 0 if it leaves none.
    const address = `127.0.0.1:${await choosePort().catch(() => 0)}`
    const runtimeAddress = runtimeAt && `127.0.0.1:${await choosePort()}`
    const runtimeUrl = runtimeAddress && `http://${runtimeAddress}`
    const [control, runtime] = await Promise.allSettled([
      startService(controlAt(address, runtimeUrl)),
      runtimeAddress && startService(runtimeAt(runtimeAddress)),
    ])
    if (control.status === 'fulfilled' && runtime.status === 'fulfilled') return { control: control.value, runtimeUrl }
    for (const started of [control, runtime]) {
      if (started.status === 'rejected' || !started.value) continue
      started.value.process.kill('SIGKILL')
      await started.value.process.exited
    }
    const { reason } = [control, runtime].find((start) => start.status === 'rejected')!
    if (tries === MAX_PORTS || !/in use/.test(String(reason))) throw reason
  }
}

/** The directory of a mill, and the shell that outlives a killed test process. */
class Home {
  readonly path = join(realpathSync(tmpdir()), `taskmill-${crypto.randomUUID()}`)
  readonly work = join(this.path, 'work')
  #leaving: Promise<void> | undefined

  /** The shell knows the directory before it is there, so that a kill at any moment leaves nothing. */
  static async make(): Promise<Home> {
    const home = new Home()
    await startHeir(home.path)
    mkdirSync(home.path, { mode: 0o700 })
    mkdirSync(home.work)
    return home
  }

  leave(): Promise<void> {
    this.#leaving ??= sweep(this.path)
    return this.#leaving
  }
}

/**
 * Starts a shell that sweeps `directory` once this process is gone; the sweep at the end of a mill ends the shell. It runs in
 * the background, as `bun test` kills the children of a test that takes too long.
 */
async function startHeir(directory: string): Promise<void> {
  const wait = 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; [ -d "$4" ] && exec "$2" "$3" "$4"'
  const child = Bun.spawn(
    ['/bin/sh', '-c', `{ ${wait}; } &`, 'taskmill-testing', String(process.pid), process.execPath, HEIR, directory],
    // A signal for the group of the test process must not reach it.
    { env: { PATH: searchPath() }, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore', detached: true },
  )
  await child.exited
}
