/** Real package managers through the proxy, with indexes of the test: pip, npm, cargo and apt. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { has, ProxiedClients } from '../../support/proxied-clients.ts'

setDefaultTimeout(60_000)

const PYTHON = '/usr/bin/python3'

let clients: ProxiedClients
beforeAll(async () => {
  clients = await ProxiedClients.start()
})
afterAll(() => clients[Symbol.asyncDispose]())

const WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
  wheel.writestr('mill_package.py', 'word = "milled"\\n')
  info = 'mill_package-1.0.dist-info/'
  wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: mill-package\\nVersion: 1.0\\n')
  wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
  wheel.writestr(info + 'RECORD', '')
`

test.skipIf(!has(PYTHON, '-m', 'pip', '--version'))('pip installs from an index', async () => {
  const name = 'mill_package-1.0-py3-none-any.whl'
  const path = join(clients.path, name)
  expect(await clients.run([PYTHON, '-c', WHEEL, path])).toMatchObject({ code: 0 })
  clients.files.set(`/simple/${name}`, await Bun.file(path).bytes())
  clients.files.set('/simple/mill-package/', `<a href="../${name}">${name}</a>`)
  const install = (host: string) => [
    ...[PYTHON, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', 'lib', '--retries', '0'],
    ...[
      '--no-cache-dir',
      '--index-url',
      `${clients.secure(host)}/simple/`,
      '--cert',
      clients.authority,
      'mill-package',
    ],
  ]
  expect(await clients.run(install('a.example'))).toMatchObject({ code: 0 })
  expect(await Bun.file(join(clients.path, 'lib/mill_package.py')).text()).toContain('milled')
  expect(await clients.run(install('b.example'))).toMatchObject({ code: 1 })
  expect(clients.proxy.events.at(-1)).toMatchObject({ data: { host: 'b.example', reason: 'unlisted' } })
})

test.skipIf(!has('npm', '--version'))('npm installs from a registry', async () => {
  mkdirSync(join(clients.path, 'package'))
  await Bun.write(join(clients.path, 'package/package.json'), '{"name": "mill-package", "version": "1.0.0"}')
  expect(await clients.run(['tar', '-czf', 'package.tgz', 'package'])).toMatchObject({ code: 0 })
  const tarball = await Bun.file(join(clients.path, 'package.tgz')).bytes()
  clients.files.set('/package.tgz', tarball)
  const dist = {
    tarball: `${clients.secure('a.example')}/package.tgz`,
    integrity: `sha512-${new Bun.CryptoHasher('sha512').update(tarball).digest('base64')}`,
  }
  const version = { name: 'mill-package', version: '1.0.0', dist }
  clients.files.set(
    '/mill-package',
    JSON.stringify({ ...version, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
  )
  mkdirSync(join(clients.path, 'project'))
  await Bun.write(join(clients.path, 'project/package.json'), '{}')
  const install = (host: string) => [
    ...['npm', 'install', '--prefix', join(clients.path, 'project'), '--no-audit', '--no-fund', '--fetch-retries', '0'],
    ...['--cache', join(clients.path, 'cache'), '--registry', clients.secure(host), 'mill-package'],
  ]
  const refused = await clients.run(install('b.example'))
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('403')])
  expect(await clients.run(install('a.example'))).toMatchObject({ code: 0 })
  const installed = Bun.file(join(clients.path, 'project/node_modules/mill-package/package.json'))
  expect(await installed.json()).toMatchObject({ version: '1.0.0' })
})

const RUSTUP = { RUSTUP_HOME: process.env.RUSTUP_HOME ?? join(homedir(), '.rustup') }

test.skipIf(!has('cargo', '--version'))('cargo fetches from a registry', async () => {
  const crate = join(clients.path, 'mill-crate-1.0.0')
  await Bun.write(join(crate, 'Cargo.toml'), '[package]\nname = "mill-crate"\nversion = "1.0.0"\nedition = "2021"\n')
  await Bun.write(join(crate, 'src/lib.rs'), 'pub const WORD: &str = "milled";\n')
  expect(await clients.run(['tar', '-czf', 'mill.crate', 'mill-crate-1.0.0'])).toMatchObject({ code: 0 })
  const bytes = await Bun.file(join(clients.path, 'mill.crate')).bytes()
  const cksum = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  clients.files.set('/index/config.json', JSON.stringify({ dl: `${clients.secure('a.example')}/crates` }))
  const entry = { name: 'mill-crate', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false }
  clients.files.set('/index/mi/ll/mill-crate', JSON.stringify(entry))
  clients.files.set('/crates/mill-crate/1.0.0/download', bytes)
  const user = join(clients.path, 'crate-user')
  const depends = '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nmill-crate = "1"\n'
  await Bun.write(join(user, 'Cargo.toml'), depends)
  await Bun.write(join(user, 'src/lib.rs'), '')
  const fetching = async (host: string) => {
    const home = join(clients.path, `cargo-${host}`)
    const settings = `[source.crates-io]\nreplace-with = "mill"\n[source.mill]\nregistry = "sparse+${clients.secure(host)}/index/"\n`
    await Bun.write(join(home, 'config.toml'), settings)
    // The cargo of Debian 12 has this protocol as one that is not stable yet.
    const more = {
      ...RUSTUP,
      RUSTC_BOOTSTRAP: '1',
      CARGO_HOME: home,
      CARGO_HTTP_CAINFO: clients.authority,
      CARGO_NET_RETRY: '0',
    }
    return await clients.run(
      ['cargo', '-Z', 'sparse-registry', 'fetch', '--manifest-path', join(user, 'Cargo.toml')],
      more,
    )
  }
  expect(await fetching('b.example')).toMatchObject({ code: 101, stderr: expect.stringContaining('403') })
  expect(await fetching('a.example')).toMatchObject({ code: 0 })
  expect(await Bun.file(join(user, 'Cargo.lock')).text()).toContain(cksum)
})

const hasApt = has('apt-get', '--version') && has('dpkg-deb', '--version')

test.skipIf(!hasApt)('apt reads a repository and downloads from it, by HTTP and HTTPS', async () => {
  const control =
    'Package: mill-package\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t.example>\nDescription: t\n'
  await Bun.write(join(clients.path, 'deb/DEBIAN/control'), control)
  expect(await clients.run(['dpkg-deb', '--build', '--root-owner-group', 'deb', 'mill.deb'])).toMatchObject({ code: 0 })
  const bytes = await Bun.file(join(clients.path, 'mill.deb')).bytes()
  const sha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  clients.files.set('/apt/mill.deb', bytes)
  clients.files.set('/apt/Packages', `${control}Filename: mill.deb\nSize: ${bytes.length}\nSHA256: ${sha256}\n\n`)
  const apt = async (url: string, name: string) => {
    const own = join(clients.path, name)
    for (const path of ['lists/partial', 'archives/partial', 'parts']) mkdirSync(join(own, path), { recursive: true })
    await Bun.write(join(own, 'status'), '')
    await Bun.write(join(own, 'sources.list'), `deb [trusted=yes allow-insecure=yes] ${url}/apt ./\n`)
    const options = {
      ...{ 'Dir::Etc::sourcelist': `${own}/sources.list`, 'Dir::Etc::sourceparts': `${own}/parts` },
      ...{ 'Dir::State::lists': `${own}/lists`, 'Dir::State::status': `${own}/status`, 'Dir::Cache': own },
      ...{ 'Dir::Etc::parts': `${own}/parts`, 'APT::Sandbox::User': '', 'Acquire::Retries': '0' },
      'Acquire::https::CaInfo': clients.authority,
    }
    const flags = Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`])
    const updated = await clients.run(['apt-get', ...flags, 'update', '--error-on=any'])
    if (updated.code !== 0) return updated
    await clients.run(['rm', '-f', 'mill-package_1.0_all.deb'])
    return await clients.run(['apt-get', ...flags, 'download', 'mill-package'])
  }
  for (const [i, url] of [clients.plain('a.example'), clients.secure('a.example')].entries()) {
    expect(await apt(url, `apt-${i}`)).toMatchObject({ code: 0 })
    expect(await Bun.file(join(clients.path, 'mill-package_1.0_all.deb')).bytes()).toEqual(bytes)
  }
  expect(await apt(clients.plain('b.example'), 'apt-none')).toMatchObject({
    ...{ code: 100, stderr: expect.stringContaining('403') },
  })
})
