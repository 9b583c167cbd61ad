/**
 * Goal: `install.sh` installs exactly the release of this platform, or nothing. A server on loopback has archives with
 * small scripts instead of the executables; `release.long.test.ts` installs real ones.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { writeChecksums } from '../../scripts/release/checksums.ts'
import { installerFor } from '../../scripts/release/installer.ts'
import { ROOT } from '../support/deploy-files.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const PROGRAMS = ['taskmill', 'taskmill-control', 'taskmill-runtime']
const SOURCE = readFileSync(join(ROOT, 'scripts/install.sh'), 'utf8')

const releases = tempDir()
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: async ({ url }) => {
    const file = Bun.file(join(releases.path, new URL(url).pathname))
    return (await file.exists()) ? new Response(file) : new Response(null, { status: 404 })
  },
})
const address = `http://127.0.0.1:${server.port}`

/** Writes a release whose executables print `version`, and do what `more` says. */
function publish(version: string, platform: string, programs = PROGRAMS, more = ''): string {
  const directory = join(releases.path, `v${version}`)
  const name = `taskmill-${version}-${platform}`
  mkdirSync(join(directory, name), { recursive: true })
  for (const program of programs) {
    writeFileSync(join(directory, name, program), `#!/bin/sh\necho ${program} ${version} ${platform}\n${more}\n`)
    chmodSync(join(directory, name, program), 0o755)
  }
  Bun.spawnSync(['tar', '-C', directory, '-czf', join(directory, `${name}.tar.gz`), name])
  rmSync(join(directory, name), { recursive: true })
  const archives = readdirSync(directory).filter((file) => file.startsWith('taskmill-'))
  writeChecksums(archives.map((file) => join(directory, file)))
  return directory
}

beforeAll(() => {
  for (const platform of ['linux-x64', 'linux-x64-baseline', 'linux-arm64', 'linux-x64-musl', 'darwin-arm64']) {
    publish('1.0.0', platform)
    publish('1.1.0', platform)
  }
})

afterAll(async () => {
  await server.stop(true)
  releases[Symbol.dispose]()
})

interface Machine {
  readonly system?: string
  readonly processor?: string
  readonly env?: Record<string, string>
}

/** Runs the installer of release 1.0.0 as `sh install.sh`, with `uname` of `machine`. */
async function install(home: string, args: readonly string[] = [], machine: Machine = {}) {
  const { system = 'Linux', processor = 'x86_64', env = {} } = machine
  const tools = join(home, 'tools')
  mkdirSync(tools, { recursive: true })
  const script = join(home, 'install.sh')
  writeFileSync(join(tools, 'uname'), `#!/bin/sh\ncase $1 in -s) echo ${system} ;; -m) echo ${processor} ;; esac\n`)
  chmodSync(join(tools, 'uname'), 0o755)
  writeFileSync(script, installerFor(SOURCE, { VERSION: '1.0.0', RELEASES: address }))
  const child = Bun.spawn(['sh', script, ...args], {
    cwd: home,
    env: testEnvironment({ HOME: home, PATH: `${tools}:/usr/bin:/bin`, ...env }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, stdout, stderr }
}

const said = (file: string): string => Bun.spawnSync([file]).stdout.toString().trim()
const installed = (prefix: string) =>
  existsSync(join(prefix, 'bin')) ? readdirSync(join(prefix, 'bin')).toSorted() : []

const missing = (Bun.which('curl') ?? Bun.which('wget')) ? '' : ' (skipped: neither curl nor wget is installed)'

describe.skipIf(missing !== '')(`install.sh${missing}`, () => {
  test('installs three executables below HOME and says what is next', async () => {
    using home = tempDir()
    const { code, stdout, stderr } = await install(home.path)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const bin = join(home.path, '.local/bin')
    expect(readdirSync(bin).toSorted()).toEqual(PROGRAMS)
    expect(said(join(bin, 'taskmill-control'))).toMatch(/^taskmill-control 1\.0\.0 linux-x64(-baseline)?$/)
    expect(stdout).toContain(`Installed taskmill 1.0.0: ${bin}/taskmill,`)
    expect(stdout).toContain(`export PATH="${bin}:$PATH"`)
  })

  test('changes nothing the second time, and repairs what was changed', async () => {
    using home = tempDir()
    await install(home.path)
    const file = join(home.path, '.local/bin/taskmill')
    const before = statSync(file).ino
    expect((await install(home.path)).stdout).toBe(`taskmill 1.0.0 is installed already in ${home.path}/.local/bin.\n`)
    expect(statSync(file).ino).toBe(before)
    writeFileSync(file, 'torn')
    expect((await install(home.path)).stdout).toContain('Installed taskmill 1.0.0')
    expect(said(file)).toContain('taskmill 1.0.0')
  })

  test('replaces another version, and goes back', async () => {
    using home = tempDir()
    const prefix = join(home.path, 'own prefix')
    for (const version of ['1.0.0', '1.1.0', '1.0.0']) {
      expect((await install(home.path, ['--version', `v${version}`, '--prefix', prefix])).code).toBe(0)
      expect(said(join(prefix, 'bin/taskmill-runtime'))).toContain(`taskmill-runtime ${version}`)
    }
  })

  test.skipIf(Bun.which('wget') === null)('downloads with wget where there is no curl', async () => {
    using home = tempDir()
    const tools = [
      'cat',
      'chmod',
      'cut',
      'dirname',
      'grep',
      'gzip',
      'head',
      'mkdir',
      'mktemp',
      'mv',
      'rm',
      'sed',
      'sh',
      'sha256sum',
      'tar',
      'wget',
    ]
    mkdirSync(join(home.path, 'tools'))
    for (const tool of tools) symlinkSync(Bun.which(tool)!, join(home.path, 'tools', tool))
    const { code, stderr } = await install(home.path, [], { env: { PATH: join(home.path, 'tools') } })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const missing = await install(home.path, ['--version', '9.9.9'], { env: { PATH: join(home.path, 'tools') } })
    expect(missing.stderr).toBe(`install.sh: cannot download ${address}/v9.9.9/SHA256SUMS\n`)
  })

  test('keeps quiet about PATH where it has the directory', async () => {
    using home = tempDir()
    const PATH = `${home.path}/tools:/usr/bin:/bin:${home.path}/.local/bin`
    expect((await install(home.path, [], { env: { PATH } })).stdout).not.toContain('is not in PATH')
  })

  test.each([
    ['Linux', 'aarch64', 'linux-arm64'],
    ['Darwin', 'arm64', 'darwin-arm64'],
  ])('takes the archive of %s on %s', async (system, processor, platform) => {
    using home = tempDir()
    expect((await install(home.path, [], { system, processor })).code).toBe(0)
    expect(said(join(home.path, '.local/bin/taskmill'))).toBe(`taskmill 1.0.0 ${platform}`)
  })

  test.each([
    [{ system: 'SunOS' }, 'there is no release for SunOS: only for Linux and macOS (build it from source)'],
    [{ processor: 'riscv64' }, 'there is no release for the processor riscv64: only for x86_64 and arm64'],
    [
      { env: { TASKMILL_RELEASES: 'http://example.org/releases' } },
      'the address of the release must begin with https://: http://example.org/releases/v1.0.0/SHA256SUMS',
    ],
    [
      { env: { TASKMILL_RELEASES: 'http://127.0.0.1.example.org/releases' } },
      'the address of the release must begin with https://: http://127.0.0.1.example.org/releases/v1.0.0/SHA256SUMS',
    ],
  ])('refuses %j', async (machine, text) => {
    using home = tempDir()
    const { code, stderr } = await install(home.path, [], machine)
    expect({ code, stderr }).toEqual({ code: 1, stderr: `install.sh: ${text}\n` })
    expect(installed(join(home.path, '.local'))).toEqual([])
  })

  test.each([
    [['--prefx', '/x'], 'unknown flag --prefx (see --help)'],
    [['--version'], '--version needs a value'],
    [['--version', '1.0;id'], '--version must be a version such as 0.1.0: 1.0;id'],
    [['--version', '../1.0.0'], '--version must be a version such as 0.1.0: ../1.0.0'],
  ])('says what is wrong with %j', async (args, text) => {
    using home = tempDir()
    const { code, stderr } = await install(home.path, args)
    expect({ code, stderr }).toEqual({ code: 2, stderr: `install.sh: ${text}\n` })
  })

  test('installs nothing of a release that is not there, is damaged, or is not whole', async () => {
    using home = tempDir()
    const prefix = join(home.path, '.local')
    const missing = await install(home.path, ['--version', '9.9.9'])
    expect(missing.code).toBe(1)
    expect(missing.stderr).toContain(`install.sh: cannot download ${address}/v9.9.9/SHA256SUMS\n`)

    const damaged = publish('1.2.0', 'linux-arm64')
    const archive = join(damaged, 'taskmill-1.2.0-linux-arm64.tar.gz')
    writeFileSync(archive, Buffer.concat([readFileSync(archive), Buffer.from('x')]))
    const arm64 = { processor: 'aarch64' }
    expect((await install(home.path, ['--version', '1.2.0'], arm64)).stderr).toMatch(
      /^install\.sh: the checksum of taskmill-1\.2\.0-linux-arm64\.tar\.gz is [0-9a-f]{64}, but SHA256SUMS says [0-9a-f]{64}: nothing was installed\n$/,
    )
    publish('1.3.0', 'linux-arm64', ['taskmill', 'taskmill-control'])
    expect((await install(home.path, ['--version', '1.3.0'], arm64)).stderr).toBe(
      'install.sh: taskmill-1.3.0-linux-arm64.tar.gz does not contain taskmill-runtime\n',
    )
    publish('1.4.0', 'linux-x64-musl')
    expect((await install(home.path, ['--version', '1.4.0'], arm64)).stderr).toBe(
      'install.sh: release 1.4.0 has no archive taskmill-1.4.0-linux-arm64.tar.gz\n',
    )
    expect(installed(prefix)).toEqual([])
  })

  test('a failed installation leaves the earlier one as it was', async () => {
    using home = tempDir()
    await install(home.path)
    expect((await install(home.path, ['--version', '9.9.9'])).code).toBe(1)
    expect(installed(join(home.path, '.local'))).toEqual(PROGRAMS)
    expect((await install(home.path)).stdout).toContain('is installed already')
  })

  test('removes what it installed, and nothing else', async () => {
    using home = tempDir()
    const bin = join(home.path, '.local/bin')
    await install(home.path)
    writeFileSync(join(bin, 'other'), '')
    const { code, stdout } = await install(home.path, ['--uninstall'])
    expect(code).toBe(0)
    for (const program of PROGRAMS) expect(stdout).toContain(`removed ${bin}/${program}\n`)
    expect(readdirSync(bin)).toEqual(['other'])
    expect(existsSync(join(home.path, '.local/share/taskmill'))).toBe(false)
    const again = await install(home.path, ['--uninstall'])
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('taskmill is not installed below') })
  })

  test('removes nothing while the services run, and tells where their data is', async () => {
    using home = tempDir()
    const bin = join(home.path, '.local/bin')
    const state = join(home.path, '.local/state/taskmill')
    const client = (running: boolean) =>
      `#!/bin/sh\n[ "$*" = 'status -o json' ] && echo '{"ok":true,"data":{"running":${running}}}'\n`
    await install(home.path)
    mkdirSync(state, { recursive: true })
    writeFileSync(join(bin, 'taskmill'), client(true))
    const refused = await install(home.path, ['--uninstall'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`${bin}/taskmill down first`) })
    expect(readdirSync(bin).toSorted()).toEqual(PROGRAMS)
    writeFileSync(join(bin, 'taskmill'), client(false))
    const { stdout } = await install(home.path, ['--uninstall'])
    expect(stdout).toContain(`Kept ${state}: graphs, results, logs`)
    expect(existsSync(state)).toBe(true)
  })

  test('an upgrade under running services says how they get it', async () => {
    using home = tempDir()
    const status = `if [ "$*" = 'status -o json' ]; then echo '{"ok":true,"data":{"running":true}}'; fi`
    publish('1.2.0', 'linux-x64', PROGRAMS, status)
    publish('1.2.0', 'linux-x64-baseline', PROGRAMS, status)
    const { stdout } = await install(home.path, ['--version', '1.2.0'])
    expect(stdout).toContain('still have their old executables: taskmill down, then taskmill up.')
  })

  test('keeps an executable that somebody changed', async () => {
    using home = tempDir()
    const bin = join(home.path, '.local/bin')
    await install(home.path)
    writeFileSync(join(bin, 'taskmill'), 'mine')
    const { code, stdout } = await install(home.path, ['--uninstall'])
    expect(code).toBe(1)
    expect(stdout).toContain(`kept ${bin}/taskmill: it was changed after its installation\n`)
    expect(readdirSync(bin)).toEqual(['taskmill'])
  })

  test('without the lines of a release it asks for them', async () => {
    using home = tempDir()
    const child = Bun.spawnSync(['sh', join(ROOT, 'scripts/install.sh')], { env: testEnvironment({ HOME: home.path }) })
    expect(child.stderr.toString()).toBe('install.sh: no version: use --version, or the installer of a release\n')
    expect(child.exitCode).toBe(2)
  })
})

test('a value that a shell would read is refused', () => {
  expect(() => installerFor(SOURCE, { VERSION: '1.0.0', RELEASES: 'https://x/$(id)' })).toThrow(
    'RELEASES of the installer has characters that a shell reads: https://x/$(id)',
  )
  expect(() => installerFor('#!/bin/sh\n', { VERSION: '1.0.0', RELEASES: 'https://x' })).toThrow(
    'install.sh has no line VERSION_OF_RELEASE=',
  )
})
