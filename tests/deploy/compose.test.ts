/** Goal: the compose file fits the images and the executables. Method: it is read as YAML and compared with theirs. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDurationMs } from '../../shared/settings/duration.ts'
import {
  DEPLOY,
  helpOf,
  onlyValueOf,
  ROOT,
  readCompose,
  readDeployed,
  readDockerfile,
  variablesOf,
} from '../support/deploy-files.ts'

const compose = readCompose()

/** `${NAME:-default}`, read as compose does where NAME is not set. */
const unset = (text: string): string => text.replace(/\$\{\w+:-([^}]*)\}/g, '$1')

test('has both services, and declares the volumes that they use', () => {
  expect(Object.keys(compose.services)).toEqual(['control', 'runtime'])
  const used = Object.values(compose.services).flatMap(({ volumes }) => volumes.map((volume) => volume.split(':')[0]!))
  expect(used.sort()).toEqual(Object.keys(compose.volumes).sort())
})

describe.each([
  ['control', 'taskmill-control', []],
  ['runtime', 'taskmill-runtime', ['serve']],
] as const)('%s', (name, program, serves) => {
  const service = compose.services[name]!
  const file = readDockerfile(`${name}.Dockerfile`)

  test('is built of its Dockerfile, from the root, over a base image of one’s choice', () => {
    const { context, dockerfile, args } = service.build
    expect(join(DEPLOY, context, dockerfile)).toBe(join(DEPLOY, `${name}.Dockerfile`))
    expect(existsSync(join(DEPLOY, context, '.dockerignore'))).toBeTrue()
    expect([Object.keys(args), `BASE=${unset(args.BASE!)}`]).toEqual([['BASE'], onlyValueOf(file, 'ARG')])
    expect(unset(service.image)).toBe(program)
  })

  test('does not start without a token, and says so', () => {
    expect(service.environment.SERVICE_TOKEN).toMatch(/^\$\{SERVICE_TOKEN:\?set it to a secret[^}]*\}$/)
  })

  test('sets variables that the service knows', async () => {
    const { variables } = await helpOf(program, serves)
    expect(Object.keys(service.environment).filter((variable) => !variables.includes(variable))).toEqual([])
  })

  test('is published on loopback alone, at its default port', () => {
    const port = onlyValueOf(file, 'EXPOSE')
    expect(service.ports.map(unset)).toEqual([`127.0.0.1:${port}:${port}`])
  })

  test('keeps its data in a volume, and where its tasks start', () => {
    const kept = service.volumes.map((volume) => volume.split(':')[1])
    expect(kept).toEqual([...new Set(['/var/lib/taskmill', onlyValueOf(file, 'WORKDIR')])])
    expect(kept).toContain(variablesOf(file).SERVICE_DATA_DIR ?? '/var/lib/taskmill')
  })

  test('comes back after a crash, and has an init that reaps', () => {
    expect([service.restart, service.init]).toEqual(['unless-stopped', true])
  })
})

test('control is given the time that it takes to end its tasks', async () => {
  const { defaults } = await helpOf('taskmill-control')
  const neededMs = parseDurationMs(defaults['--shutdown-timeout']!)! + parseDurationMs(defaults['--kill-grace']!)!
  expect(parseDurationMs(compose.services.control!.stop_grace_period!)!).toBeGreaterThan(neededMs)
})

test('control knows where the runtime is, once it has a use for it', async () => {
  const { flags } = await helpOf('taskmill-control')
  const port = onlyValueOf(readDockerfile('runtime.Dockerfile'), 'EXPOSE')
  const expected = flags.includes('--runtime-url') ? `http://runtime:${port}` : undefined
  expect(compose.services.control!.environment.SERVICE_RUNTIME_URL).toBe(expected as string)
})

test('the variables of the compose file are those that its page explains', () => {
  const own = [...readDeployed('docker-compose.yml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name!)
  const [table] = /^\| variable [\s\S]*?\n\n/m.exec(readFileSync(join(ROOT, 'deploy/README.md'), 'utf8'))!
  const explained = [...table.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!)
  expect(explained.filter((name) => name !== 'COMPOSE_PROJECT_NAME').sort()).toEqual([...new Set(own)].sort())
})
