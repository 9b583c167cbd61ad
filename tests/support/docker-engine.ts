/** Finds a real docker engine: the one of the machine, or the one that `scripts/with-docker-engine` starts. */
import { testEnvironment } from './service.ts'

/** Where docker finds its engine; nothing else of our environment is needed. */
export const ENGINE_ENV = Object.fromEntries(
  ['DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'DOCKER_CERT_PATH', 'DOCKER_TLS_VERIFY', 'HOME'].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  ),
)

/** Milliseconds for one docker command of a test. */
const DOCKER_MS = 90_000

/** Runs the machine's own docker, gives its output, throws its words. */
export const docker = (...args: string[]): Promise<string> => run(['docker', ...args])

/** Runs a program that asks the engine, gives its output without the last line's end, throws its words. */
export async function run(
  command: readonly string[],
  { env = {}, cwd, limitMs = DOCKER_MS }: { env?: Record<string, string>; cwd?: string; limitMs?: number } = {},
): Promise<string> {
  const child = Bun.spawn([...command], {
    env: testEnvironment({ ...ENGINE_ENV, ...env }),
    ...(cwd !== undefined && { cwd }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: limitMs,
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(stderr.trim())
  return stdout.trim()
}

/** Why no engine answers; undefined when one does. `TASKMILL_MUST_DOCKER=1` makes it a failure. */
async function faultOfEngine(): Promise<string | undefined> {
  try {
    await docker('version', '--format', '{{.Server.Version}}')
    return undefined
  } catch (error) {
    if (process.env.TASKMILL_MUST_DOCKER === '1') throw error
    return process.env.TASKMILL_NO_DOCKER || (error as Error).message
  }
}

export const faultOfTheEngine = await faultOfEngine()

/** For a `describe.skipIf`. */
export const engineTitle =
  faultOfTheEngine === undefined ? 'a real engine' : `a real engine (none: ${faultOfTheEngine})`
