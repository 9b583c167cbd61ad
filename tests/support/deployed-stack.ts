/**
 * Runs the stack of deploy/ in a real docker engine, with images of its own for each test file, on a small Debian. It
 * is removed at the end.
 */
import { runClient } from './client.ts'
import { BUILD_MS, debianImage, faultOfDebian } from './debian-image.ts'
import { DEPLOY } from './deploy-files.ts'
import { docker, ENGINE_ENV, engineTitle, faultOfTheEngine, run } from './docker-engine.ts'
import { workplace } from './ensure-running.ts'
import { freePort } from './free-port.ts'

const commandOfCompose = async (): Promise<readonly string[] | undefined> => {
  const plugin = await docker('compose', 'version').catch(() => undefined)
  if (plugin !== undefined) return ['docker', 'compose']
  return Bun.which('docker-compose') === null ? undefined : ['docker-compose']
}

const composeCommand = faultOfTheEngine === undefined ? await commandOfCompose() : undefined

/** Why there can be no stack here; `TASKMILL_MUST_DOCKER=1` makes it a failure. */
async function faultOfStack(): Promise<string | undefined> {
  if (faultOfTheEngine !== undefined) return faultOfTheEngine
  let fault: string | undefined
  if (composeCommand === undefined) fault = 'neither docker compose nor docker-compose is there'
  else fault = await faultOfDebian()
  if (fault !== undefined && process.env.TASKMILL_MUST_DOCKER === '1') throw new Error(fault)
  return fault
}

export const faultOfTheStack = await faultOfStack()

/** For a `describe.skipIf`. */
export const stackTitle =
  faultOfTheEngine === undefined && faultOfTheStack !== undefined
    ? `a real engine with compose (skipped: ${faultOfTheStack})`
    : engineTitle

export const TOKEN = 'sesame-42'

export type Stack = Awaited<ReturnType<typeof makeStack>>

/** Nothing of it runs yet. Takes up to `BUILD_MS`. */
export async function makeStack() {
  const place = await workplace()
  const runtimePort = await freePort()
  const project = `taskmill-test-${crypto.randomUUID().slice(0, 8)}`
  const images = { control: `${project}-control`, runtime: `${project}-runtime` }
  const base = await debianImage(`${project}-base`)
  const env = {
    ...ENGINE_ENV,
    COMPOSE_PROJECT_NAME: project,
    TASKMILL_BASE: base.name,
    TASKMILL_CONTROL_IMAGE: images.control,
    TASKMILL_RUNTIME_IMAGE: images.runtime,
    TASKMILL_CONTROL_PORT: String(place.port),
    TASKMILL_RUNTIME_PORT: String(runtimePort),
  }
  const withToken = { ...env, SERVICE_TOKEN: TOKEN }
  const compose = (...args: string[]) =>
    run([...composeCommand!, ...args], { cwd: DEPLOY, env: withToken, limitMs: BUILD_MS })
  const request =
    (baseUrl: string) =>
    (path: string, init: RequestInit = {}) =>
      fetch(baseUrl + path, { ...init, headers: { authorization: `Bearer ${TOKEN}` } })
  return {
    images,
    urls: { control: place.url, runtime: `http://127.0.0.1:${runtimePort}` },
    control: request(place.url),
    runtime: request(`http://127.0.0.1:${runtimePort}`),
    compose,
    ensure: ({ token = TOKEN }: { token?: string } = {}) =>
      place.ensure(
        [
          ...['--with-runtime', '--runtime-url', `http://127.0.0.1:${runtimePort}`, '--compose-dir', DEPLOY],
          ...['--docker-timeout', '5m', '--timeout', '1m'],
        ],
        { env: token === '' ? env : { ...withToken, SERVICE_TOKEN: token } },
      ),
    client: (args: readonly string[], stdin = '') =>
      runClient(args, { url: place.url, env: { SERVICE_TOKEN: TOKEN }, stdin }),
    /** `starting`, `healthy` or `unhealthy`. */
    health: async (service: string) =>
      docker('inspect', '--format', '{{.State.Health.Status}}', await compose('ps', '-q', service)),
    /** Containers, networks and volumes that there are of it. */
    async parts(): Promise<string[]> {
      const filter = ['--filter', `label=com.docker.compose.project=${project}`, '--format']
      const kinds = [
        ['ps', '--all', ...filter, '{{.Names}}'],
        ['network', 'ls', ...filter, '{{.Name}}'],
        ['volume', 'ls', ...filter, '{{.Name}}'],
      ]
      const parts = await Promise.all(kinds.map((args) => docker(...args)))
      return parts.flatMap((names) => names.split('\n')).filter((name) => name !== '')
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await compose('down', '--volumes', '--timeout', '1')
      await docker('rmi', '--force', ...Object.values(images))
      await base[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
    },
  }
}
