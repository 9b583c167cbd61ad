/**
 * `taskmill ensure-running` with docker: a stand-in that does what each test says, and a real engine where there is one.
 * The services that "containers" run are real.
 */
import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { $ } from 'bun'
import { builtProgram as binary, compile } from '../../scripts/build.ts'
import type { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { docker, ENGINE_ENV, engineTitle, faultOfTheEngine } from '../support/docker-engine.ts'
import { dataOf, workplace } from '../support/ensure-running.ts'
import { freePort } from '../support/free-port.ts'
import { testEnvironment } from '../support/service.ts'
import { type Reactions, StandInDocker, shellWord } from '../support/stand-in-docker.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const READY_SERVER = join(import.meta.dir, '..', 'fixtures', 'ready-server.ts')

/** A workplace with a docker of its own, and a directory with a compose file. */
async function dockerPlace() {
  const place = await workplace()
  const docker = new StandInDocker(place.home)
  const composeDir = join(place.home, 'stack')
  mkdirSync(composeDir)
  writeFileSync(join(composeDir, 'compose.yaml'), 'services: {}\n')
  const ensure = (args: readonly string[], { env = {}, ...rest }: Parameters<typeof runClient>[1] = {}) =>
    place.ensure(args, { env: { PATH: docker.path, ...env }, ...rest })
  /** Shell that starts a real control service at the address of this place, as a container would. */
  const control = async () => {
    const dataDir = join(place.home, 'data')
    return `in_background ${await binary('taskmill-control')} --addr 127.0.0.1:${place.port} --data-dir ${dataDir}`
  }
  const dispose = async () => {
    await docker[Symbol.asyncDispose]()
    await place[Symbol.asyncDispose]()
  }
  return { ...place, docker, composeDir, ensure, control, [Symbol.asyncDispose]: dispose }
}

const say = (text: string) => `printf '%s\\n' ${shellWord(text)} >&2`

const NO_DAEMON = 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?'

describe('compose', () => {
  test('docker compose up -d in the directory; started_by compose', async () => {
    await using place = await dockerPlace()
    place.docker.install({ 'compose up -d': `[ "$PWD" = '${place.composeDir}' ] || exit 9\n${await place.control()}` })
    const run = await place.ensure(['--compose-dir', place.composeDir])
    expect(run.exitCode).toBe(0)
    expect(run.envelope as object).toEqual({
      ok: true,
      data: {
        control: {
          url: place.url,
          reachable: true,
          started_by: 'compose',
          health_status_code: 200,
          attempt_note: `docker compose up -d in ${place.composeDir}`,
        },
        manual_hints: [],
      },
    })
    expect(place.docker.calls).toEqual(['docker compose version', 'docker compose up -d'])
  })

  test('SERVICE_COMPOSE_DIR names the directory; the flag beats it', async () => {
    await using place = await dockerPlace()
    place.docker.install({ 'compose up -d': await place.control() })
    const env = { SERVICE_COMPOSE_DIR: '/no/such/directory' }
    const refused = await place.ensure([], { env })
    expect(dataOf(refused).control.attempt_note).toBe('the compose directory /no/such/directory does not exist')
    expect((await place.ensure(['--compose-dir', 'stack'], { env, cwd: place.home })).exitCode).toBe(0)
  })

  test('docker-compose up -d where docker has no compose', async () => {
    await using place = await dockerPlace()
    place.docker.install({ compose: `${say('docker: unknown command: docker compose')}; exit 1`, '*': 'exit 1' })
    place.docker.install({ 'up -d': await place.control() }, 'docker-compose')
    const run = await place.ensure(['--compose-dir', place.composeDir])
    expect(dataOf(run).control).toMatchObject({
      reachable: true,
      started_by: 'compose',
      attempt_note: `docker-compose up -d in ${place.composeDir}`,
    })
  })

  test('docker-compose up -d where there is no docker', async () => {
    await using place = await dockerPlace()
    place.docker.install({ 'up -d': await place.control() }, 'docker-compose')
    expect((await place.ensure(['--compose-dir', place.composeDir])).exitCode).toBe(0)
  })

  test.each<[string, Reactions | undefined, string, string]>([
    [
      'a missing docker',
      undefined,
      'docker is not in PATH; docker-compose is not in PATH either',
      'docker compose version',
    ],
    [
      'a docker without compose',
      { '*': `${say("docker: unknown command: docker compose\n\nRun 'docker --help' for more information")}; exit 1` },
      'docker compose version failed (exit code 1): docker: unknown command: docker compose; docker-compose is not in PATH either',
      'docker compose version',
    ],
    [
      'a failing compose',
      { '*up*': `echo noise; ${say('pulling\n\x1b[31mservice "control": no such image\x1b[0m\n')}; exit 17` },
      'in DIR: docker compose up failed (exit code 17): service "control": no such image',
      'cd DIR && docker compose up -d',
    ],
    [
      'a daemon that is not there',
      { '*up*': `${say(NO_DAEMON)}; exit 1` },
      `in DIR: docker compose up failed (exit code 1): the docker daemon does not answer: ${NO_DAEMON}`,
      'docker info',
    ],
    [
      'a docker that says nothing',
      { '*up*': 'exit 1' },
      'in DIR: docker compose up failed (exit code 1): it said nothing',
      'cd DIR && docker compose up -d',
    ],
    [
      'a docker that hangs',
      { '*up*': `${say('Pulling control')}; echo $$ > hanging; exec sleep 600` },
      'in DIR: docker compose up did not end within 2500ms (--docker-timeout) and was stopped: Pulling control',
      'docker info',
    ],
  ])('%s is told, exit code 4', async (_, reactions, note, hint) => {
    await using place = await dockerPlace()
    if (reactions !== undefined) place.docker.install(reactions)
    // It holds for each docker command: only for the one that hangs may it be short.
    const limit = note.includes('--docker-timeout') ? ['--docker-timeout', '2500ms'] : []
    const run = await place.ensure(['--compose-dir', place.composeDir, ...limit])
    const inPlace = (text: string) => text.replaceAll('DIR', place.composeDir)
    expect({ exitCode: run.exitCode, control: dataOf(run).control }).toEqual({
      exitCode: 4,
      control: { url: place.url, reachable: false, attempt_note: inPlace(note) },
    })
    expect(dataOf(run).manual_hints).toContain(inPlace(hint))
    expect(place.started()).toEqual([])
  })

  test('a directory that does not exist, is a file, or has no compose file is told before docker is asked', async () => {
    await using place = await dockerPlace()
    place.docker.install({})
    const empty = join(place.home, 'empty')
    mkdirSync(empty)
    const noteFor = async (dir: string) => dataOf(await place.ensure(['--compose-dir', dir])).control.attempt_note
    const file = join(place.composeDir, 'compose.yaml')
    expect(await noteFor('/no/such')).toBe('the compose directory /no/such does not exist')
    expect(await noteFor(file)).toBe(`the compose directory ${file} is not a directory`)
    expect(await noteFor(empty)).toStartWith(`there is no compose file in ${empty} (compose.yaml, `)
    expect(place.docker.calls).toEqual([])
  })

  test('COMPOSE_FILE may name the file', async () => {
    await using place = await dockerPlace()
    place.docker.install({ 'compose up -d': await place.control() })
    rmSync(join(place.composeDir, 'compose.yaml'))
    const run = await place.ensure(['--compose-dir', place.composeDir], { env: { COMPOSE_FILE: 'stack.yaml' } })
    expect(run.exitCode).toBe(0)
  })

  test('a stack whose control service does not come up is told with its last log lines', async () => {
    await using place = await dockerPlace()
    place.docker.install({ '*logs*': 'echo "control-1  | out of cheese"' })
    const run = await place.ensure(['--compose-dir', place.composeDir, '--timeout', '50ms'])
    expect(run.exitCode).toBe(4)
    const { started_by, attempt_note: note } = dataOf(run).control
    expect(started_by).toBe('compose')
    expect(note).toContain('not ready within 50ms (GET ')
    expect(note).toEndWith('its last log lines:\ncontrol-1  | out of cheese')
    expect(dataOf(run).manual_hints).toContain(`cd ${place.composeDir} && docker compose logs --tail 50`)
  })

  test('a service that is there counts, even if docker failed', async () => {
    await using place = await dockerPlace()
    place.docker.install({
      '*up*': `${await place.control()}; until [ -s '${place.docker.output}' ]; do :; done; exit 1`,
    })
    const run = await place.ensure(['--compose-dir', place.composeDir])
    expect({ exitCode: run.exitCode, by: dataOf(run).control.started_by }).toEqual({ exitCode: 0, by: undefined })
    expect(dataOf(run).control.attempt_note).toContain('docker compose up failed (exit code 1)')
  })

  test('nothing is started for a service of another machine', async () => {
    await using place = await dockerPlace()
    place.docker.install({})
    const run = await place.ensure(['--compose-dir', place.composeDir], { url: 'http://taskmill.invalid' })
    expect({ exitCode: run.exitCode, calls: place.docker.calls }).toEqual({ exitCode: 4, calls: [] })
  })

  test('a docker under way ends with an interrupted client', async () => {
    await using place = await dockerPlace()
    place.docker.install({ '*up*': 'sleep 600 & wait' })
    const child = Bun.spawn([await binary('taskmill'), 'ensure-running', '--compose-dir', place.composeDir], {
      env: testEnvironment({ PATH: place.docker.path, HOME: place.home, SERVICE_URL: place.url }),
      stdout: 'pipe',
      stderr: 'ignore',
    })
    await place.docker.called('docker compose up')
    child.kill('SIGTERM')
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({ ok: false })
    expect(await child.exited).toBe(143)
    await until(place.started, (pids) => pids.length === 0)
  })
})

describe('the image of the runtime', () => {
  const IMAGE = 'example.org/runtime:1'

  /** A place with a control service, so that only the runtime is missing. */
  async function runtimePlace() {
    const place = await dockerPlace()
    const control: Control = await startControl()
    const port = await freePort()
    const name = `taskmill-runtime-${port}`
    const url = `http://127.0.0.1:${port}`
    const ready = `SERVICE_RUNTIME_LISTEN_ADDR=127.0.0.1:${port} in_background ${process.execPath} ${READY_SERVER}`
    const noSuchContainer = `${say(`Error response from daemon: No such container: ${name}`)}; exit 1`
    const ensure = (args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) =>
      place.ensure(['--with-runtime', '--runtime-url', url, '--runtime-image', IMAGE, ...args], {
        url: control.url,
        env,
      })
    const dispose = async () => {
      await control[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
    }
    const runLine = `docker run -d --name ${name} -p 127.0.0.1:${port}:18080 -e SERVICE_RUNTIME_LISTEN_ADDR=0.0.0.0:18080 ${IMAGE}`
    return { ...place, name, port, ready, noSuchContainer, ensure, url, runLine, [Symbol.asyncDispose]: dispose }
  }

  test('docker run -d with a stable name and the port published on loopback; started_by container', async () => {
    await using place = await runtimePlace()
    place.docker.install({
      'container inspect*': place.noSuchContainer,
      'run*': place.ready,
      'wait*': 'exec sleep 600',
    })
    const run = await place.ensure()
    expect(run.exitCode).toBe(0)
    expect(dataOf(run).runtime).toEqual({
      url: place.url,
      reachable: true,
      started_by: 'container',
      ready_status_code: 200,
      attempt_note: `docker run -d of ${IMAGE}, container ${place.name}`,
    })
    expect(place.docker.calls).toContain(place.runLine)
    await until(place.started, (pids) => pids.length === 1) // the server; the `docker wait` ends with the client
  })

  test('a container of that name that has stopped is started again', async () => {
    await using place = await runtimePlace()
    place.docker.install({ 'container inspect*': `echo exited ${IMAGE}`, 'start*': place.ready })
    const run = await place.ensure()
    expect(dataOf(run).runtime).toMatchObject({ reachable: true, started_by: 'container' })
    expect(place.docker.calls).toContain(`docker start ${place.name}`)
    expect(place.docker.calls.filter((call) => call.startsWith('docker run'))).toEqual([])
  })

  test('a container that runs already is waited for', async () => {
    await using place = await runtimePlace()
    place.docker.install({ 'container inspect*': `echo running ${IMAGE}\n${place.ready}` })
    const run = await place.ensure()
    expect(dataOf(run).runtime).toEqual({
      url: place.url,
      reachable: true,
      ready_status_code: 200,
      attempt_note: `the container ${place.name} runs already`,
    })
  })

  test('a container of another image is left alone, and told', async () => {
    await using place = await runtimePlace()
    place.docker.install({ 'container inspect*': 'echo exited example.org/runtime:0' })
    const run = await place.ensure()
    expect(run.exitCode).toBe(5)
    const note = `the container ${place.name} is there, but of the image example.org/runtime:0 instead of ${IMAGE}`
    expect(dataOf(run).runtime?.attempt_note).toBe(note)
    expect(dataOf(run).manual_hints.slice(0, 2)).toEqual([`docker rm -f ${place.name}`, place.runLine])
  })

  test('a container that ends before it answers is noticed, with its exit code and last words', async () => {
    await using place = await runtimePlace()
    place.docker.install({
      'container inspect*': place.noSuchContainer,
      'wait*': 'echo 3',
      'logs*': `echo starting; ${say('no room for the database')}`,
    })
    const run = await place.ensure(['--timeout', '1h'])
    expect(run.exitCode).toBe(5)
    expect(dataOf(run).runtime).toEqual({
      url: place.url,
      reachable: false,
      attempt_note: `docker run -d of ${IMAGE}, container ${place.name}; the container ${place.name} ended with exit code 3, its last log lines:\nstarting\nno room for the database`,
    })
    expect(dataOf(run).manual_hints).toContain(`docker logs --tail 50 ${place.name}`)
  })

  test('a container that could not be started is removed, and told', async () => {
    await using place = await runtimePlace()
    const made = join(place.home, 'made')
    const words = `docker: Error response from daemon: Bind for 127.0.0.1:${place.port} failed: port is already allocated\n\nRun 'docker run --help' for more information`
    place.docker.install({
      'container inspect*': `[ -e ${made} ] && echo created ${IMAGE} && exit\n${place.noSuchContainer}`,
      'run*': `touch ${made}; ${say(words)}; exit 125`,
    })
    const run = await place.ensure()
    expect(run.exitCode).toBe(5)
    expect(dataOf(run).runtime?.attempt_note).toBe(`docker run failed (exit code 125): ${words.split('\n')[0]}`)
    expect(place.docker.calls.at(-1)).toBe(`docker rm ${place.name}`)
  })

  test('a daemon that is not there is told', async () => {
    await using place = await runtimePlace()
    place.docker.install({ '*': `${say(NO_DAEMON)}; exit 1` })
    const run = await place.ensure()
    expect(run.exitCode).toBe(5)
    expect(dataOf(run).runtime?.attempt_note).toBe(
      `docker container inspect failed (exit code 1): the docker daemon does not answer: ${NO_DAEMON}`,
    )
  })
})

describe('a compose file and an image', () => {
  const IMAGE = 'example.org/runtime:1'

  test('the image is not needed where compose brings the runtime', async () => {
    await using place = await dockerPlace()
    const port = await freePort()
    const runtime = `SERVICE_RUNTIME_LISTEN_ADDR=127.0.0.1:${port} in_background ${process.execPath} ${READY_SERVER}`
    const isReady = `until grep -q '^ready$' '${place.docker.output}'; do :; done`
    place.docker.install({ 'compose up -d': `${await place.control()}\n${runtime}\n${isReady}` })
    const flags = ['--compose-dir', place.composeDir, '--runtime-image', IMAGE]
    const run = await place.ensure(['--with-runtime', '--runtime-url', `http://127.0.0.1:${port}`, ...flags])
    expect({ exitCode: run.exitCode, by: dataOf(run).runtime?.started_by }).toEqual({ exitCode: 0, by: 'compose' })
    expect(place.docker.calls).toEqual(['docker compose version', 'docker compose up -d'])
  })

  test('the runtime comes from the image where compose brings control alone', async () => {
    await using place = await dockerPlace()
    const port = await freePort()
    const runtime = `SERVICE_RUNTIME_LISTEN_ADDR=127.0.0.1:${port} in_background ${process.execPath} ${READY_SERVER}`
    place.docker.install({ 'compose up -d': await place.control(), 'run*': runtime })
    const env = { SERVICE_COMPOSE_DIR: place.composeDir, SERVICE_RUNTIME_IMAGE: IMAGE }
    const run = await place.ensure(['--with-runtime', '--runtime-url', `http://127.0.0.1:${port}`], { env })
    expect(run.exitCode).toBe(0)
    expect(dataOf(run)).toMatchObject({ control: { started_by: 'compose' }, runtime: { started_by: 'container' } })
  })
})

interface Images extends AsyncDisposable {
  /** Our ready server. */
  readonly ready: string
  /** The same, but it fails at once. */
  readonly failing: string
}

/** Base images of an executable and the libraries that it needs. */
async function makeImages(): Promise<Images> {
  const ready = `taskmill-test-${crypto.randomUUID()}`
  const failing = `${ready}-failing`
  using dir = tempDir()
  const server = join(dir.path, 'server')
  await compile(READY_SERVER, server)
  const libraries = (await $`ldd ${server}`.text()).match(/\/[^ ]+/g) ?? []
  for (const library of libraries) {
    mkdirSync(join(dir.path, dirname(library)), { recursive: true })
    copyFileSync(library, join(dir.path, library))
  }
  const env = testEnvironment(ENGINE_ENV)
  for (const [image, entry] of [
    [ready, 'ENTRYPOINT ["/server"]'],
    [failing, 'ENTRYPOINT ["/server", "fail"]'],
  ] as const) {
    await $`tar -C ${dir.path} -c . | docker import -c ${entry} - ${image}`.env(env).quiet()
  }
  return {
    ready,
    failing,
    [Symbol.asyncDispose]: async () => {
      await docker('rmi', '-f', ready, failing)
    },
  }
}

describe.skipIf(faultOfTheEngine !== undefined)(engineTitle, () => {
  test('runs an image, finds it running, starts it again after it was stopped, and tells why one ends', async () => {
    await using control = await startControl()
    await using images = await makeImages()
    await using place = await workplace()
    const port = await freePort()
    const name = `taskmill-runtime-${port}`
    const url = `http://127.0.0.1:${port}`
    await using containers = new AsyncDisposableStack()
    containers.defer(async () => void (await docker('rm', '-f', name)))
    const ensure = (image: string) =>
      place.ensure(['--with-runtime', '--runtime-url', url, '--runtime-image', image], {
        url: control.url,
        env: ENGINE_ENV,
      })

    const missing = await ensure('127.0.0.1:1/no-such-image')
    expect(missing.exitCode).toBe(5)
    expect(dataOf(missing).runtime?.attempt_note).toMatch(/^docker run failed \(exit code 125\): .*127\.0\.0\.1:1/)

    const started = await ensure(images.ready)
    expect(dataOf(started).runtime).toEqual({
      url,
      reachable: true,
      started_by: 'container',
      ready_status_code: 200,
      attempt_note: `docker run -d of ${images.ready}, container ${name}`,
    })
    expect(await docker('port', name)).toBe(`18080/tcp -> 127.0.0.1:${port}`)
    expect(dataOf(await ensure(images.ready)).runtime).toEqual({ url, reachable: true, ready_status_code: 200 })

    await docker('stop', name)
    const again = await ensure(images.ready)
    expect(dataOf(again).runtime).toMatchObject({
      reachable: true,
      started_by: 'container',
      attempt_note: `docker start of its stopped container, container ${name}`,
    })

    await docker('rm', '-f', name)
    const failing = await ensure(images.failing)
    expect(failing.exitCode).toBe(5)
    const words = `the container ${name} ended with exit code 3, its last log lines:\nno room for the database`
    expect(dataOf(failing).runtime?.attempt_note).toEndWith(words)
  })
})
