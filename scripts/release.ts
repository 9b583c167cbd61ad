/**
 * Builds a release: the three executables for each platform, archives, npm packages, checksums, the list of what they
 * contain, the installer and the release notes.
 *
 *   bun run release                                        all platforms, into dist/release
 *   bun run release --platform linux-x64 --platform linux-arm64
 *   bun run release --out /tmp/release --level 3 --releases https://example.org/taskmill
 *
 * `--releases` is the address below which each release has a directory `v<version>`; the installer downloads from it.
 * `--level` is the level of zstd (1 to 19, default 19).
 */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { VERSION } from '../shared/process/version.ts'
import { compile, PROGRAMS } from './build.ts'
import { archive } from './release/archives.ts'
import { bundledPackages, thirdPartyLicenses } from './release/bundled.ts'
import { writeChecksums } from './release/checksums.ts'
import { installerFor } from './release/installer.ts'
import { releaseNotes } from './release/notes.ts'
import { packMain, packPlatform } from './release/npm.ts'
import { PLATFORMS, type Platform, platformsNamed } from './release/platforms.ts'
import { run } from './release/run.ts'
import { sbom } from './release/sbom.ts'

const ROOT = dirname(import.meta.dir)
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'LICENSE']
const MAX_LEVEL = 19

interface Release {
  readonly out: string
  /** Seconds since 1970 of the commit. */
  readonly time: number
  readonly level: number
  readonly licenses: string
}

/** Builds the archives and the npm package of one platform. Returns their paths. */
async function buildPlatform(platform: Platform, release: Release): Promise<readonly string[]> {
  const { name, target } = platform
  const directory = join(release.out, `taskmill-${VERSION}-${name}`)
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  try {
    for (const [program, entry] of Object.entries(PROGRAMS)) {
      const file = join(directory, program)
      await compile(join(ROOT, entry), file, { target })
      chmodSync(file, 0o755)
    }
    for (const document of DOCUMENTS) copyFileSync(join(ROOT, document), join(directory, document))
    writeFileSync(join(directory, 'THIRD-PARTY-LICENSES'), release.licenses)
    const archives = await archive(directory, release)
    const npm = await packPlatform(platform, directory, release.out)
    return npm === undefined ? archives : [...archives, npm]
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: join(ROOT, 'dist/release') },
      platform: { type: 'string', multiple: true, default: [] },
      level: { type: 'string', default: String(MAX_LEVEL) },
      releases: { type: 'string', default: 'https://github.com/taskmill/taskmill/releases/download' },
    },
  })
  const level = Number(values.level)
  if (!Number.isInteger(level) || level < 1 || level > MAX_LEVEL) {
    throw new Error(`--level must be a whole number from 1 to ${MAX_LEVEL}`)
  }
  const platforms = platformsNamed(values.platform)
  const out = resolve(values.out)
  mkdirSync(out, { recursive: true })
  const [commit, seconds] = (await run(['git', 'log', '-1', '--format=%H %ct'], { cwd: ROOT })).trim().split(' ')
  const time = Number(seconds)
  const packages = await bundledPackages(ROOT)
  const files: string[] = []
  const write = (name: string, text: string) => {
    writeFileSync(join(out, name), text)
    files.push(join(out, name))
  }
  for (const platform of platforms) {
    const built = await buildPlatform(platform, { out, time, level, licenses: thirdPartyLicenses(packages) })
    files.push(...built)
    console.log(built.join('\n'))
  }
  files.push(await packMain(out, PLATFORMS))
  const installer = readFileSync(join(ROOT, 'scripts/install.sh'), 'utf8')
  write('install.sh', installerFor(installer, { VERSION, RELEASES: values.releases }))
  const contents = sbom({ version: VERSION, bunVersion: Bun.version, time, commit: commit!, packages })
  write(`taskmill-${VERSION}.spdx.json`, `${JSON.stringify(contents, null, 2)}\n`)
  const checksums = writeChecksums(files)
  // Not an asset: the release's own text.
  writeFileSync(join(out, 'RELEASE_NOTES.md'), releaseNotes(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), VERSION))
  console.log(checksums)
}

await main()
