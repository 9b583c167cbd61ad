/** The packages whose code is in the executables, as the bundler reports them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROGRAMS } from '../build.ts'

/** Entries of the dashboard, which the control executable contains as text. */
const PAGE_ENTRIES = ['control/dashboard/app/main.tsx', 'control/dashboard/app/early.ts']

export interface BundledPackage {
  readonly name: string
  readonly version: string
  /** SPDX expression of `package.json`. */
  readonly license: string
  /** Text of its licence file; undefined if it has none. */
  readonly licenseText: string | undefined
}

/** All bundled packages, sorted by name and version. `root` is the directory of the project. */
export async function bundledPackages(root: string): Promise<readonly BundledPackage[]> {
  const directories = new Set<string>()
  for (const [entries, target] of [
    [Object.values(PROGRAMS), 'bun'],
    [PAGE_ENTRIES, 'browser'],
  ] as const) {
    const entrypoints = entries.map((entry) => join(root, entry))
    const { metafile } = await Bun.build({ entrypoints, target, root, metafile: true, splitting: true })
    for (const path of Object.keys(metafile!.inputs)) {
      const directory = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]
      if (directory !== undefined) directories.add(join(root, directory.slice(directory.indexOf('node_modules'))))
    }
  }
  if (directories.size === 0) throw new Error('the bundler named no package')
  return [...directories]
    .map(packageIn)
    .toSorted((a, b) => `${a.name} ${a.version}`.localeCompare(`${b.name} ${b.version}`, 'en'))
}

function packageIn(directory: string): BundledPackage {
  const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
  const file = readdirSync(directory).find((entry) => /^(licen[cs]e|copying)(\.\w+)?$/i.test(entry))
  const licenseText =
    file !== undefined && existsSync(join(directory, file)) ? readFileSync(join(directory, file), 'utf8') : undefined
  return { name, version, license: typeof license === 'string' ? license : 'NOASSERTION', licenseText }
}

/** The licences of all bundled packages, as one text. */
export const thirdPartyLicenses = (packages: readonly BundledPackage[]): string =>
  packages
    .map(({ name, version, license, licenseText }) =>
      [`${name} ${version} (${license})`, '', licenseText?.trim() ?? 'The package contains no licence file.', ''].join(
        '\n',
      ),
    )
    .join(`\n${'-'.repeat(80)}\n\n`)
