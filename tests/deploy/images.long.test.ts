/** Goal: the Dockerfiles fit the executables. Method: what they name is what the build makes and `--help` knows. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROGRAMS } from '../../scripts/build.ts'
import {
  faultsOfCommand,
  helpOf,
  type Instruction,
  onlyValueOf,
  ROOT,
  readDockerfile,
  valuesOf,
  variablesOf,
} from '../support/deploy-files.ts'

/** `COPY a b c/`: what is copied. */
const copiedBy = (file: readonly Instruction[]): string[] =>
  valuesOf(file, 'COPY').flatMap((value) => value.split(/\s+/).slice(0, -1))

const list = (json: string): string[] => JSON.parse(json)

const IMAGES = [
  { name: 'control.Dockerfile', service: 'taskmill-control', serves: [], addressFlag: '--addr', home: '/work' },
  {
    name: 'runtime.Dockerfile',
    service: 'taskmill-runtime',
    serves: ['serve'],
    addressFlag: '--listen-addr',
    home: '/var/lib/taskmill',
  },
] as const

describe.each(IMAGES)('$name', ({ name, service, serves, addressFlag, home }) => {
  const file = readDockerfile(name)
  const entry = [...list(onlyValueOf(file, 'ENTRYPOINT')), ...valuesOf(file, 'CMD').flatMap(list)]
  const check = list(/CMD (\[.*\])$/.exec(onlyValueOf(file, 'HEALTHCHECK'))![1]!)

  test('is made over a base image of one’s choice', () => {
    expect(file.slice(0, 2)).toEqual([
      { name: 'ARG', value: 'BASE=debian:12-slim' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: docker's, not ours
      { name: 'FROM', value: '${BASE}' },
    ])
  })

  test('copies executables that the build makes, and has those that it runs', () => {
    const copied = copiedBy(file)
    expect(copied.filter((path) => !(path.replace(/^dist\//, '') in PROGRAMS))).toEqual([])
    expect(copied).toContain(`dist/${entry[0]}`)
    expect(copied).toContain(`dist/${check[0]}`)
  })

  test('serves, and asks whether it is healthy, by commands that there are', async () => {
    expect(entry).toEqual([service, ...serves])
    expect(check[1]).toBe('health')
    expect([...(await faultsOfCommand(entry)), ...(await faultsOfCommand(check))]).toEqual([])
  })

  test('sets variables that the service knows; listens everywhere on the port that it exposes, the default one', async () => {
    const { variables, defaults } = await helpOf(service, serves)
    const set = variablesOf(file)
    expect(Object.keys(set).filter((variable) => !variables.includes(variable))).toEqual([])
    const port = defaults[addressFlag]!.split(':').at(-1)!
    expect(onlyValueOf(file, 'EXPOSE')).toBe(port)
    expect(Object.values(set)).toContain(`:${port}`)
    const health = await helpOf(check[0] as typeof service, ['health'])
    expect(Object.values(health.defaults)).toContain(`http://127.0.0.1:${port}`)
  })

  test('runs as a user of its own, whose data is a volume', () => {
    const user = onlyValueOf(file, 'USER')
    const [create] = valuesOf(file, 'RUN')
    expect(create).toContain(`useradd --system --uid 10001 --gid taskmill --home-dir ${home} `)
    expect([user, list(onlyValueOf(file, 'VOLUME')), onlyValueOf(file, 'WORKDIR')]).toEqual([
      'taskmill',
      ['/var/lib/taskmill'],
      home,
    ])
    const { SERVICE_DATA_DIR: dataDir = join(home, 'data') } = variablesOf(file)
    expect(dataDir).toStartWith('/var/lib/taskmill')
  })
})

test('docker is sent what the images copy, and nothing else', () => {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const copied = new Set(IMAGES.flatMap(({ name }) => copiedBy(readDockerfile(name))))
  expect(lines[0]).toBe('*')
  expect(lines.slice(1).sort()).toEqual([...copied].sort().map((path) => `!${path}`))
})
