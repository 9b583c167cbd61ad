/** `taskmill doctor`: each finding with its remedy. Against the built executables, with a HOME of its own. */
import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../../adapter/doctor/finding.ts'
import { builtProgram as binary } from '../../scripts/build.ts'
import { freePort } from '../support/free-port.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { testEnvironment } from '../support/service.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { endProcess } from '../support/stand-in-docker.ts'
import { tempDir } from '../support/temp.ts'
import { upData, upPlace } from '../support/up.ts'

interface Doctored {
  exitCode: number
  healthy: boolean
  findings: Finding[]
}

/** The client beside links to the services, or in a directory of its own. */
async function doctor(env: Readonly<Record<string, string>>, program?: string): Promise<Doctored> {
  await Promise.all([binary('taskmill-control'), binary('taskmill-runtime')])
  const child = Bun.spawn([program ?? (await binary('taskmill')), 'doctor'], {
    env: testEnvironment(env),
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const { data } = JSON.parse(await new Response(child.stdout).text()) as { data: Omit<Doctored, 'exitCode'> }
  return { exitCode: await child.exited, ...data }
}

const faultsIn = ({ findings }: Doctored) => findings.filter(({ ok }) => !ok)
const finding = ({ findings }: Doctored, check: string) => findings.find((one) => one.check === check)

test('in an empty HOME everything of ours is fine, the host is as its own doctor says, and nothing is made', async () => {
  using home = tempDir()
  const found = await doctor({ HOME: home.path })
  const ours = ['taskmill-control', 'taskmill-runtime', 'state directory', 'disk', 'token', 'services', 'port']
  for (const check of ours) expect(finding(found, check)).toMatchObject({ ok: true })
  const { stdout, exitCode } = await runRuntime(['doctor', '--json'])
  const { capabilities } = JSON.parse(stdout) as { capabilities: { name: string; available: boolean }[] }
  expect(found.findings.slice(-capabilities.length).map(({ check, ok }) => [check, ok])).toEqual(
    capabilities.map(({ name, available }) => [name, available]),
  )
  for (const { remedy } of faultsIn(found)) expect(remedy).toMatch(/\S/)
  expect([found.exitCode, found.healthy]).toEqual([exitCode, exitCode === 0])
  expect(existsSync(join(home.path, '.local'))).toBe(false)
})

test('executables that are missing, of another version or broken are found', async () => {
  using home = tempDir()
  const bin = join(home.path, 'bin')
  mkdirSync(bin)
  const program = join(bin, 'taskmill')
  copyFileSync(await binary('taskmill'), program)
  const env = { HOME: home.path, PATH: '/usr/bin:/bin' }
  const without = await doctor(env, program)
  expect(without.exitCode).toBe(1)
  for (const name of ['taskmill-control', 'taskmill-runtime']) {
    expect(finding(without, name)).toEqual({
      ...{ check: name, ok: false, detail: `${name} was not found: neither in ${bin} nor in PATH` },
      remedy: 'Install the three executables of one release into one directory.',
    })
  }
  const script = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  script('taskmill-control', 'echo taskmill-control 99.0.0')
  script('taskmill-runtime', 'echo broken >&2; exit 3')
  const odd = await doctor(env, program)
  expect(finding(odd, 'taskmill-control')?.detail).toContain('is 99.0.0, this client')
  expect(finding(odd, 'taskmill-runtime')?.detail).toEndWith('--version does not answer: broken')
  expect(finding(odd, 'host')?.detail).toEndWith('doctor did not answer: broken')
  rmSync(join(bin, 'taskmill-control'))
  symlinkSync(await binary('taskmill-control'), join(bin, 'taskmill-control'))
  expect(finding(await doctor(env, program), 'taskmill-control')).toMatchObject({ ok: true })
})

test('a state directory and a token that others can read are found', async () => {
  await using place = await upPlace()
  upData(await place.up())
  await place.client(['down'])
  chmodSync(place.stateDir, 0o755)
  chmodSync(place.paths.token, 0o640)
  const found = await doctor(place.env)
  expect(finding(found, 'state directory')).toMatchObject({ ok: false, remedy: `chmod 700 ${place.stateDir}` })
  expect(finding(found, 'token')).toMatchObject({
    ...{ ok: false, detail: `other users can read the token file ${place.paths.token}` },
    remedy: 'delete it, then taskmill down and taskmill up make a new one',
  })
  expect(found.exitCode).toBe(1)
})

test('a state directory that is a file is found', async () => {
  using home = tempDir()
  writeFileSync(join(home.path, 'taskmill'), '')
  const found = await doctor({ HOME: home.path, XDG_STATE_HOME: home.path })
  expect(finding(found, 'state directory')?.detail).toBe(`${home.path}/taskmill is not a directory`)
})

test.skipIf(!canMount)('a disk with little room is found', async () => {
  using home = tempDir()
  using disk = smallDisk(join(home.path, 'disk'), 4 * 1024 * 1024)
  const found = await doctor({ HOME: disk.path })
  expect(finding(found, 'disk')).toMatchObject({ ok: false, detail: `only 4 MiB free at ${disk.path}` })
})

describe('of services that run', () => {
  test('it says where, and finds another version, a lost token and another address', async () => {
    await using place = await upPlace()
    const { url, runtime_url } = upData(await place.up())
    const found = await doctor(place.env)
    expect(finding(found, 'control service')).toMatchObject({ ok: true, detail: `ready at ${url}` })
    expect(finding(found, 'runtime service')).toMatchObject({ ok: true, detail: `ready at ${runtime_url}` })
    expect(finding(found, 'access')).toMatchObject({ ok: true })
    expect(finding(found, 'port')).toBeUndefined()

    const record = JSON.parse(readFileSync(place.paths.record, 'utf8'))
    writeFileSync(place.paths.record, JSON.stringify({ ...record, version: '0.0.1' }))
    rmSync(place.paths.token)
    const odd = await doctor({ ...place.env, SERVICE_URL: 'http://127.0.0.1:1' })
    for (const [check, remedy] of [
      ['services', 'taskmill down, then taskmill up.'],
      ['access', 'taskmill down, then taskmill up.'],
      ['SERVICE_URL', 'unset SERVICE_URL'],
    ] as const) {
      expect(finding(odd, check)).toMatchObject({ ok: false, remedy })
    }
  })

  test('it finds a control service that was killed, and a port that somebody has taken', async () => {
    await using place = await upPlace()
    const { pid } = upData(await place.up())
    await endProcess(pid)
    const found = await doctor(place.env)
    expect(finding(found, 'services')).toMatchObject({ ok: false, remedy: expect.stringContaining('taskmill down') })
    await place.client(['down'])
    using _taken = Bun.serve({ hostname: '127.0.0.1', port: place.ports.control, fetch: () => new Response() })
    const after = await doctor(place.env)
    expect(finding(after, 'services')).toMatchObject({ ok: true })
    expect(after.findings.filter(({ check }) => check === 'port').map(({ detail }) => detail)).toEqual([
      `127.0.0.1:${place.ports.control} is taken: taskmill up takes another one`,
      `127.0.0.1:${place.ports.runtime} is free`,
    ])
  })

  test('it finds one that is not ready', async () => {
    await using place = await upPlace()
    const { pid } = upData(await place.up())
    const record = JSON.parse(readFileSync(place.paths.record, 'utf8'))
    const port = await freePort()
    writeFileSync(place.paths.record, JSON.stringify({ ...record, runtime_url: `http://127.0.0.1:${port}` }))
    const found = await doctor(place.env)
    expect(finding(found, 'runtime service')).toMatchObject({
      ok: false,
      detail: `not ready: GET http://127.0.0.1:${port}/readyz: connection refused`,
      remedy: `Read ${place.paths.log}, then taskmill down and taskmill up.`,
    })
    expect(record.pid).toBe(pid)
  })
})

test('-o table shows a line for each finding, and the remedy below it', async () => {
  using home = tempDir()
  writeFileSync(join(home.path, 'taskmill'), '')
  const child = Bun.spawn([await binary('taskmill'), 'doctor', '-o', 'table'], {
    env: testEnvironment({ XDG_STATE_HOME: home.path, HOME: home.path }),
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const text = await new Response(child.stdout).text()
  expect(await child.exited).toBe(1)
  expect(text).toContain(`WRONG   state directory: ${home.path}/taskmill is not a directory\n        Move it away`)
  expect(text).toContain('ok      taskmill-control: ')
})

test('the report of the runtime service is one JSON object with --json, and not for --escape', async () => {
  const { stdout, exitCode } = await runRuntime(['doctor', '--json', '--disable-cgroup'])
  const { capabilities } = JSON.parse(stdout)
  expect(exitCode).toBe(1)
  expect(capabilities).toContainEqual({
    ...{ name: 'limits.pids_max', available: false, reason: '--disable-cgroup is set' },
    remedy: expect.stringMatching(/\.$/),
  })
  const trying = await runRuntime(['doctor', '--json', '--escape'])
  expect([trying.exitCode, trying.stderr]).toEqual([2, 'taskmill-runtime: --json is not for doctor --escape\n'])
})
