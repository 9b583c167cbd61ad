/**
 * The npm packages of a release: one with the executables for each platform, and `taskmill` with the client, which depends
 * on them as optional dependencies. So a package manager downloads the executables of one platform only.
 */
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { PROGRAMS } from '../build.ts'
import { CLIENT_EXPORTS, writeClient } from './client-modules.ts'
import type { Platform } from './platforms.ts'
import { run } from './run.ts'

const ROOT = dirname(dirname(import.meta.dir))
const { name, version, description, license, repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** What runs the modules of the package. Browsers have no version here. */
const ENGINES = { node: '>=20', bun: '>=1.4' }

/**
 * Name of the package for `platform`. Undefined for `linux-x64`: package managers do not see AVX2, so the executables
 * without it are the ones for all processors.
 */
export function packageName(platform: Platform): string | undefined {
  if (platform.name === 'linux-x64') return undefined
  return `${name}-${platform.name === 'linux-x64-baseline' ? 'linux-x64' : platform.name}`
}

/** Packs the executables in `directory`. Returns the path of the archive in `out`. */
export async function packPlatform(platform: Platform, directory: string, out: string): Promise<string | undefined> {
  const own = packageName(platform)
  if (own === undefined) return undefined
  return await pack(out, own, async (aside) => {
    mkdirSync(join(aside, 'bin'))
    for (const program of Object.keys(PROGRAMS)) linkSync(join(directory, program), join(aside, 'bin', program))
    copyFileSync(join(directory, 'LICENSE'), join(aside, 'LICENSE'))
    copyFileSync(join(directory, 'THIRD-PARTY-LICENSES'), join(aside, 'THIRD-PARTY-LICENSES'))
    const { os, cpu, libc } = platform
    return {
      description: `Executables of ${name} for ${platform.name}`,
      ...{ os: [os], cpu: [cpu], ...(libc !== undefined && { libc: [libc] }), files: ['bin', 'THIRD-PARTY-LICENSES'] },
    }
  })
}

/**
 * Packs `taskmill`, which depends on the packages for `platforms`. Without any, its programs run where those packages are
 * installed otherwise. Returns the path of the archive in `out`.
 */
export async function packMain(out: string, platforms: readonly Platform[]): Promise<string> {
  return await pack(out, name, async (aside) => {
    await writeClient(aside)
    mkdirSync(join(aside, 'bin'))
    for (const program of Object.keys(PROGRAMS)) {
      const file = join(aside, 'bin', `${program}.js`)
      writeFileSync(file, starter(program))
      chmodSync(file, 0o755)
    }
    copyFileSync(join(ROOT, 'LICENSE'), join(aside, 'LICENSE'))
    copyFileSync(join(ROOT, 'docs/programs.md'), join(aside, 'README.md'))
    const packages = platforms.flatMap((platform) => packageName(platform) ?? [])
    return {
      ...{ description, type: 'module', exports: CLIENT_EXPORTS, engines: ENGINES, sideEffects: false },
      bin: Object.fromEntries(Object.keys(PROGRAMS).map((program) => [program, `bin/${program}.js`])),
      ...(packages.length > 0 && { optionalDependencies: Object.fromEntries(packages.map((each) => [each, version])) }),
    }
  })
}

async function pack(out: string, own: string, fill: (directory: string) => Promise<object>): Promise<string> {
  const aside = mkdtempSync(join(out, '.npm-')) // in the same file system as the executables
  try {
    const fields = await fill(aside)
    writeFileSync(
      join(aside, 'package.json'),
      `${JSON.stringify({ name: own, version, license, repository, ...fields }, null, 2)}\n`,
    )
    await run([process.execPath, 'pm', 'pack', '--quiet', '--destination', aside], { cwd: aside })
    const archive = join(out, `npm-${own}-${version}.tgz`)
    renameSync(join(aside, `${own}-${version}.tgz`), archive)
    return archive
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

/** A program for Node that runs the executable of this platform in its place, as far as Node can. */
const starter = (program: string): string => `#!/usr/bin/env node
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'

const require = createRequire(import.meta.url)
const platform = \`\${process.platform}-\${process.arch}\`
// On Linux a package manager installs the package of the C library that is here.
const executable = [\`taskmill-\${platform}\`, \`taskmill-\${platform}-musl\`].flatMap((name) => {
  try {
    return join(dirname(require.resolve(\`\${name}/package.json\`)), 'bin/${program}')
  } catch {
    return []
  }
})[0]
if (executable === undefined) {
  console.error(\`${program}: no package with the executables for \${platform} is installed: install taskmill without --omit=optional\`)
  process.exit(1)
}
const child = spawn(executable, process.argv.slice(2), { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(\`${program}: \${executable} cannot be run: \${error.message}\`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
`
