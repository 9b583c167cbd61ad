/** Which build this executable is. `scripts/build.ts` puts the constants in. */
import { VERSION } from './version.ts'

declare const TASKMILL_COMMIT: string
declare const TASKMILL_BUILD: string

export interface BuildInfo {
  readonly version: string
  /** The commit of the sources; `-dirty` behind it if they were changed. `unknown` without git, and from the sources. */
  readonly commit: string
  /** The platform that it was built for: `linux-x64`. */
  readonly build: string
  /** The version of Bun inside. */
  readonly bun: string
}

export const BUILD_INFO: BuildInfo = {
  version: VERSION,
  commit: typeof TASKMILL_COMMIT === 'undefined' ? 'unknown' : TASKMILL_COMMIT,
  build: typeof TASKMILL_BUILD === 'undefined' ? `${process.platform}-${process.arch}` : TASKMILL_BUILD,
  bun: Bun.version,
}

/** The line of `--version` of a service. The second word is the version. */
export const versionLine = (program: string, { version, commit, build, bun }: BuildInfo = BUILD_INFO): string =>
  `${program} ${version} (commit ${commit}, ${build}, Bun ${bun})`
