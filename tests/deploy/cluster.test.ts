/**
 * Goal: the files of deploy/cluster/ fit the executables, and each other. Method: they are read, every command line and
 * variable of ours in them is looked up in `--help`, and docker-compose and systemd say what they think of theirs.
 */
import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { YAML } from 'bun'
import { builtProgram } from '../../scripts/build.ts'
import { DEPLOY, faultsOfCommand, helpOf, onlyValueOf, readDeployed, readDockerfile } from '../support/deploy-files.ts'
import { kubernetesObjects, type PodOwner } from '../support/kubernetes.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const PROGRAM = { control: 'taskmill-control', runtime: 'taskmill-runtime' } as const
type Service = keyof typeof PROGRAM
const SERVICES = Object.keys(PROGRAM) as Service[]

const compose = YAML.parse(readDeployed('cluster/docker-compose.yml')) as {
  services: Record<string, ComposeService>
  volumes: Record<string, unknown>
}

interface ComposeService {
  readonly image: string
  readonly environment?: Record<string, string>
  readonly command?: readonly string[]
  readonly volumes: readonly string[]
  readonly restart: string
}

const composedOf = (service: Service): [string, ComposeService][] =>
  Object.entries(compose.services).filter(([name]) => name.startsWith(`${service}-`))

const knownVariables = async (service: Service) =>
  (await helpOf(PROGRAM[service], service === 'runtime' ? ['serve'] : [])).variables

/** The command line of a container: what its image starts, with the arguments of the file. */
const commandOf = (service: Service, args: readonly string[] = []): string[] => {
  const file = readDockerfile(`${service}.Dockerfile`)
  const own = file.filter(({ name }) => name === 'CMD').flatMap(({ value }) => JSON.parse(value) as string[])
  return [...(JSON.parse(onlyValueOf(file, 'ENTRYPOINT')) as string[]), ...(args.length > 0 ? args : own)]
}

describe('the compose file', () => {
  test('has two replicas, three runtime services, and a database with a standby', () => {
    expect(SERVICES.map((service) => composedOf(service).length)).toEqual([2, 3])
    expect(Object.keys(compose.services)).toContainValues(['proxy', 'primary', 'standby'])
  })

  test.each(SERVICES)('starts each %s with flags and variables that it has', async (service) => {
    for (const [, { command, environment = {} }] of composedOf(service)) {
      expect(await faultsOfCommand(commandOf(service, command))).toEqual([])
      const known = await knownVariables(service)
      expect(Object.keys(environment).filter((variable) => !known.includes(variable))).toEqual([])
    }
  })

  test('declares the volumes that it uses, one for each service', () => {
    const used = Object.values(compose.services).flatMap(({ volumes }) =>
      volumes.map((volume) => volume.split(':')[0]!),
    )
    const named = used.filter((name) => !name.startsWith('.'))
    expect(named.sort()).toEqual(Object.keys(compose.volumes).sort())
    for (const path of used.filter((name) => name.startsWith('.'))) expect(readDeployed(`cluster/${path}`)).not.toBe('')
  })

  test('has control know each runtime service by its address', () => {
    const [, { environment }] = composedOf('control')[0]!
    const port = onlyValueOf(readDockerfile('runtime.Dockerfile'), 'EXPOSE')
    const addresses = [...environment!.SERVICE_RUNTIME_URL!.matchAll(/\w+=(\S+)/g)].map(([, address]) => address!)
    expect(addresses).toEqual(composedOf('runtime').map(([name]) => `http://${name}:${port}`))
  })

  test('has the proxy ask each replica whether it accepts graphs', () => {
    const config = readDeployed('cluster/haproxy.cfg')
    const port = onlyValueOf(readDockerfile('control.Dockerfile'), 'EXPOSE')
    const servers = [...config.matchAll(/^ {2}server (\S+) (\S+) cookie \1$/gm)].map(([, , address]) => address!)
    expect(servers).toEqual(composedOf('control').map(([name]) => `${name}:${port}`))
    expect(config).toContain('httpchk GET /readyz')
  })

  test('has variables that its page explains', () => {
    const own = [...readDeployed('cluster/docker-compose.yml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name!)
    const page = readDeployed('cluster/README.md')
    expect([...new Set(own)].filter((name) => !page.includes(`\`${name}\``))).toEqual([])
  })

  const program = Bun.which('docker-compose')
  test.skipIf(program === null)(
    `is accepted by docker-compose${program === null ? ' (not in PATH)' : ''}`,
    async () => {
      const child = Bun.spawn([program!, '-f', join(DEPLOY, 'cluster/docker-compose.yml'), 'config', '--quiet'], {
        env: testEnvironment({ SERVICE_TOKEN: 'token', POSTGRES_PASSWORD: 'password' }),
        ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
      })
      const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      expect([await child.exited, stdout + stderr]).toEqual([0, ''])
    },
  )
})

describe('Kubernetes', () => {
  const objects = kubernetesObjects()
  const ownerOf = (service: Service) =>
    objects.find(
      ({ kind, metadata }) => ['Deployment', 'StatefulSet'].includes(kind) && metadata.name === `taskmill-${service}`,
    ) as PodOwner

  test('has what keeps pods apart, reachable and there', () => {
    const kinds = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    for (const name of Object.values(PROGRAM)) {
      for (const kind of ['Service', 'PodDisruptionBudget', 'NetworkPolicy']) expect(kinds).toContain(`${kind} ${name}`)
    }
    expect([ownerOf('control').kind, ownerOf('runtime').kind]).toEqual(['Deployment', 'StatefulSet'])
  })

  test.each(SERVICES)('starts %s with flags that it has, at its default port', async (service) => {
    const [container] = ownerOf(service).spec.template.spec.containers
    expect(await faultsOfCommand([...commandOf(service).slice(0, 1), ...container!.args])).toEqual([])
    const port = Number(onlyValueOf(readDockerfile(`${service}.Dockerfile`), 'EXPOSE'))
    expect(container!.ports).toEqual([{ name: 'http', containerPort: port }])
    expect(container!.args).toContain(`${service === 'control' ? '--addr' : '--listen-addr'}=:${port}`)
    const known = await knownVariables(service)
    const variables = (container!.env ?? []).map(({ name }) => name).filter((name) => name.startsWith('SERVICE_'))
    expect(variables.filter((name) => !known.includes(name))).toEqual([])
    const used = container!.args.flatMap((arg) => [...arg.matchAll(/\$\((\w+)\)/g)].map(([, name]) => name!))
    expect(container!.env?.map(({ name }) => name)).toEqual([...new Set(used)])
  })

  test.each(SERVICES)('selects the pods of %s by the label that they have', (service) => {
    const { selector, template } = ownerOf(service).spec
    const labels = template.metadata.labels
    expect(selector.matchLabels).toEqual(labels)
    const named = objects.filter(({ metadata }) => metadata.name === PROGRAM[service])
    const selectors = named.map(({ spec }) => {
      const { selector: own, podSelector } = spec as { selector?: object; podSelector?: object }
      const found = podSelector ?? own
      return found !== undefined && 'matchLabels' in found ? found.matchLabels : found
    })
    expect(selectors).toEqual(selectors.map(() => labels))
  })

  test.each(SERVICES)('mounts volumes of %s that there are, for a user who is not root', (service) => {
    const { template, volumeClaimTemplates = [] } = ownerOf(service).spec
    const { containers, volumes, securityContext } = template.spec
    const there = [...volumes, ...volumeClaimTemplates.map(({ metadata }) => metadata)].map(({ name }) => name)
    expect(containers[0]!.volumeMounts.map(({ name }) => name).toSorted()).toEqual(there.toSorted())
    expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001 })
    const secret = volumes.find(({ name }) => name === 'secrets')
    expect(readDeployed('cluster/README.md')).toContain(`create secret generic ${secret?.secret?.secretName} `)
  })

  test('gives control the time that it takes to end its tasks', async () => {
    const { terminationGracePeriodSeconds } = ownerOf('control').spec.template.spec
    expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(30)
  })

  test('has control know each pod of the runtime services by its address', () => {
    const { serviceName, replicas } = ownerOf('runtime').spec
    const port = onlyValueOf(readDockerfile('runtime.Dockerfile'), 'EXPOSE')
    const names = Array.from({ length: replicas }, (_, i) => `taskmill-runtime-${i}`)
    const known = ownerOf('control').spec.template.spec.containers[0]!.args.filter((arg) =>
      arg.startsWith('--runtime-url='),
    )
    expect(known).toEqual(names.map((name) => `--runtime-url=${name}=http://${name}.${serviceName}:${port}`))
  })
})

describe('systemd', () => {
  const dropIn = (service: Service) => readDeployed(`cluster/systemd/taskmill-${service}.conf`)

  test.each(SERVICES)('starts %s with flags that it has, in the data directory of its unit', async (service) => {
    const [, command] = /^ExecStart=(\/.*)$/m.exec(dropIn(service))!
    expect(await faultsOfCommand(command!.split(' '))).toEqual([])
    const [, ofUnit] = /--data-dir (\S+)/.exec(readDeployed(`taskmill-${service}.service`))!
    expect(command).toContain(`--data-dir ${ofUnit}`)
  })

  const analyze = Bun.which('systemd-analyze')
  test.skipIf(analyze === null)(
    `finds nothing wrong with the drop-ins${analyze === null ? ' (not in PATH)' : ''}`,
    async () => {
      using dir = tempDir()
      for (const service of SERVICES) await builtProgram(PROGRAM[service])
      const dist = dirname(await builtProgram('taskmill'))
      const local = (text: string) => text.replaceAll('/usr/local/bin/', `${dist}/`)
      const paths = SERVICES.map((service) => {
        const path = join(dir.path, `taskmill-${service}.service`)
        writeFileSync(path, local(readDeployed(`taskmill-${service}.service`)))
        mkdirSync(`${path}.d`)
        writeFileSync(join(`${path}.d`, 'cluster.conf'), local(dropIn(service)))
        return path
      })
      const child = Bun.spawn([analyze!, 'verify', ...paths], {
        env: testEnvironment(),
        ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
      })
      const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      const said = (stdout + stderr)
        .split('\n')
        .filter((line) => line.includes('taskmill') && !/DelegateSubgroup/.test(line))
      expect({ exitCode: await child.exited, said }).toEqual({ exitCode: 0, said: [] })
    },
  )
})

test('the page names every file of the folder', () => {
  const page = readFileSync(join(DEPLOY, 'cluster/README.md'), 'utf8')
  const files = readdirSync(join(DEPLOY, 'cluster'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'README.md')
    .map((entry) => join(entry.parentPath, entry.name).slice(join(DEPLOY, 'cluster').length + 1))
  expect(files.filter((file) => !page.includes(file))).toEqual([])
})
