/**
 * A release of two platforms, made by `bun run release`: its archives are whole, its executables run, and the installer
 * installs it from a server. The executables for arm64 run under qemu.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '../../shared/process/version.ts'
import { ROOT } from '../support/deploy-files.ts'
import { freePort } from '../support/free-port.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const PROGRAMS = ['taskmill', 'taskmill-control', 'taskmill-runtime']
/** Where Debian's cross compiler keeps the C library of arm64. */
const ARM64_ROOT = '/usr/aarch64-linux-gnu'
const out = tempDir()
const host = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64'
const platforms = [...new Set([host, 'linux-x64-baseline', 'linux-arm64'])]
const packages = ['taskmill', 'taskmill-linux-x64', 'taskmill-linux-arm64']
let port: number

/** Where Bun keeps its executables for other platforms. Without it, it writes them into the working directory. */
const cache = { BUN_INSTALL_CACHE_DIR: process.env.BUN_INSTALL_CACHE_DIR ?? join(homedir(), '.bun/install/cache') }

function run(command: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawnSync([...command], { cwd: ROOT, env: testEnvironment(env) })
  return { code: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() }
}

beforeAll(async () => {
  port = await freePort()
  const flags = platforms.flatMap((platform) => ['--platform', platform])
  const { code, stderr } = run(
    [
      ...[process.execPath, 'scripts/release.ts', '--out', out.path, '--level', '1', ...flags],
      ...['--releases', `http://127.0.0.1:${port}`],
    ],
    cache,
  )
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
}, 600_000)

afterAll(() => out[Symbol.dispose]())

describe('a release', () => {
  test('has two archives for each platform, the installer, the notes and the list of its packages', () => {
    expect(readdirSync(out.path).toSorted()).toEqual(
      [
        ...packages.map((name) => `npm-${name}-${VERSION}.tgz`),
        ...['RELEASE_NOTES.md', 'SHA256SUMS', 'install.sh', `taskmill-${VERSION}.spdx.json`],
        ...platforms.flatMap((name) => ['gz', 'zst'].map((kind) => `taskmill-${VERSION}-${name}.tar.${kind}`)),
      ].toSorted(),
    )
    const check = Bun.spawnSync(['sha256sum', '--check', '--quiet', 'SHA256SUMS'], { cwd: out.path })
    expect({ code: check.exitCode, stdout: check.stdout.toString() }).toEqual({ code: 0, stdout: '' })
  })

  test('names every package that is bundled, with its licence', async () => {
    const { packages } = await Bun.file(join(out.path, `taskmill-${VERSION}.spdx.json`)).json()
    const names: string[] = packages.map(({ name }: { name: string }) => name)
    for (const name of ['taskmill', 'bun', 'elysia', '@sinclair/typebox', 'citty', 'consola', 'preact', 'zod']) {
      expect(names).toContain(name)
    }
    expect(names).not.toContain('typescript')
    for (const entry of packages) expect(entry.licenseConcluded).toMatch(/^[A-Z0-9][\w.() -]+$/)
  })

  test.each([
    ['gz', '--gzip'],
    ['zst', '--zstd'],
  ])('contains the executables and documents in its .%s', (kind, flag) => {
    const archive = join(out.path, `taskmill-${VERSION}-${host}.tar.${kind}`)
    const lines = run(['tar', flag, '--list', '--verbose', '--numeric-owner', '--file', archive])
      .stdout.trim()
      .split('\n')
    const files = lines.map((line) => line.split(/\s+/)).map(([mode, owner, , , , path]) => `${mode} ${owner} ${path}`)
    const top = `taskmill-${VERSION}-${host}`
    expect(files).toEqual([
      `drwxr-xr-x 0/0 ${top}/`,
      ...['CHANGELOG.md', 'LICENSE', 'README.md', 'THIRD-PARTY-LICENSES'].map(
        (name) => `-rw-r--r-- 0/0 ${top}/${name}`,
      ),
      ...PROGRAMS.map((name) => `-rwxr-xr-x 0/0 ${top}/${name}`),
    ])
  })
})

test('the installer installs it, its executables run a graph, and it is removed', async () => {
  using home = tempDir()
  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    fetch: ({ url }) => {
      const { pathname } = new URL(url)
      const prefix = `/v${VERSION}/`
      return pathname.startsWith(prefix)
        ? new Response(Bun.file(join(out.path, pathname.slice(prefix.length))))
        : new Response(null, { status: 404 })
    },
  })
  const prefix = join(home.path, 'prefix')
  const child = Bun.spawn(['sh', join(out.path, 'install.sh'), '--prefix', prefix], {
    env: testEnvironment({ HOME: home.path }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const stderr = await new Response(child.stderr).text()
  expect({ code: await child.exited, stderr }).toEqual({ code: 0, stderr: '' })
  await server.stop(true)
  for (const program of PROGRAMS) {
    expect(run([join(prefix, 'bin', program), '--version'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(VERSION),
    })
  }

  // The way of a new user, in an empty HOME.
  const env = { HOME: home.path }
  const taskmill = (...args: string[]) => run([join(prefix, 'bin/taskmill'), ...args], env)
  const uninstall = () => run(['sh', join(out.path, 'install.sh'), '--prefix', prefix, '--uninstall'], env)
  try {
    expect(taskmill('up')).toMatchObject({ code: 0, stdout: expect.stringContaining('"started":true') })
    expect(uninstall()).toMatchObject({ code: 1, stderr: expect.stringContaining('taskmill down first') })
    const ran = taskmill('run', 'examples/hello.json')
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('"state":"success"') })
  } finally {
    expect(taskmill('down').stdout).toContain('"stopped":true')
  }
  expect(uninstall()).toMatchObject({ code: 0, stdout: expect.stringContaining('/.local/state/taskmill: graphs') })
  expect(readdirSync(join(prefix, 'bin'))).toEqual([])
}, 600_000)

const npm = Bun.which('npm')
const withoutNpm = npm === null ? ' (skipped: npm is not installed)' : ''
test.skipIf(npm === null)(
  `npm installs the executables of this platform beside the client${withoutNpm}`,
  () => {
    using home = tempDir()
    const env = { HOME: home.path, npm_config_cache: join(home.path, 'cache'), npm_config_offline: 'true' }
    const archives = ['taskmill', `taskmill-${process.platform}-${process.arch}`].map((name) =>
      join(out.path, `npm-${name}-${VERSION}.tgz`),
    )
    writeFileSync(join(home.path, 'package.json'), '{"name": "user", "type": "module"}')
    const command = [npm!, 'install', '--prefix', home.path, '--no-audit', '--no-fund', '--ignore-scripts', ...archives]
    expect(run(command, env)).toMatchObject({ code: 0 })
    const modules = join(home.path, 'node_modules')
    expect(
      readdirSync(modules)
        .filter((name) => name.startsWith('taskmill'))
        .toSorted(),
    ).toEqual(['taskmill', `taskmill-${process.platform}-${process.arch}`])
    for (const program of PROGRAMS) {
      expect(run([join(modules, '.bin', program), '--version'])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(VERSION),
      })
    }
    // The exit code of the executable is that of the command.
    expect(run([join(modules, '.bin/taskmill'), 'no-such-command']).code).toBe(2)
    rmSync(join(modules, `taskmill-${process.platform}-${process.arch}`), { recursive: true })
    expect(run([join(modules, '.bin/taskmill'), '--version'])).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: `taskmill: no package with the executables for ${process.platform}-${process.arch} is installed: install taskmill without --omit=optional\n`,
    })
  },
  600_000,
)

const qemu = Bun.which('qemu-aarch64-static')
const missing =
  qemu === null || !existsSync(`${ARM64_ROOT}/lib/ld-linux-aarch64.so.1`)
    ? ' (skipped: qemu-user-static and libc6-arm64-cross are not installed)'
    : ''
test.skipIf(missing !== '')(
  `the executables for arm64 say their version under qemu${missing}`,
  () => {
    using aside = tempDir()
    const name = `taskmill-${VERSION}-linux-arm64`
    run(['tar', '--zstd', '-xf', join(out.path, `${name}.tar.zst`), '-C', aside.path])
    for (const program of PROGRAMS) {
      const file = join(aside.path, name, program)
      expect(readFileSync(file).readUInt16LE(18)).toBe(183) // EM_AARCH64
      expect(run([qemu!, '-L', ARM64_ROOT, file, '--version'])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(VERSION),
      })
    }
  },
  120_000,
)
