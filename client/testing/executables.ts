/** Finds the executables of taskmill for tests. */
import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

/** The variable with the directory of the executables. */
export const EXECUTABLES_VARIABLE = 'TASKMILL_BIN'

export type Executable = 'taskmill-control' | 'taskmill-runtime'

export interface Places {
  /** The directory that a caller names. Nothing else counts then. */
  readonly directory: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** The directory of our package. */
  readonly own: string
}

/**
 * Path of an executable: in the named directory, else in that of TASKMILL_BIN, else in the package of this platform beside
 * ours, else in PATH. Throws with all places where it is not.
 */
export function findExecutable(name: Executable, { directory, env, own }: Places): string {
  const named = directory ?? (env[EXECUTABLES_VARIABLE] || undefined)
  const places = named === undefined ? [...packagesBeside(own), ...pathOf(env)] : [named]
  const found = places.map((place) => join(place, name)).find(isExecutable)
  if (found !== undefined) return found
  const where = named ?? 'the package of this platform, nor in PATH'
  throw new Error(
    `${name} was not found: it is not in ${where}. Install taskmill, or name the directory of its executables: startTaskmill({ executables }), or the variable ${EXECUTABLES_VARIABLE}`,
  )
}

/** Directories of executables of our packages for this platform. */
function packagesBeside(own: string): string[] {
  const platform = `${process.platform}-${process.arch}`
  const modules = dirname(own)
  const isOurs = (name: string) => name === platform || name.startsWith(`${platform}-`)
  return [join(own, 'bin'), ...inModules(modules, 'taskmill-', isOurs), ...inScope(modules, isOurs)]
}

const inModules = (modules: string, prefix: string, isOurs: (name: string) => boolean): string[] =>
  namesIn(modules)
    .filter((name) => name.startsWith(prefix) && isOurs(name.slice(prefix.length)))
    .map((name) => join(modules, name, 'bin'))

const inScope = (modules: string, isOurs: (name: string) => boolean): string[] =>
  inModules(join(modules, '@taskmill'), '', isOurs)

/** In order: the plain name of a platform comes before its variants. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).toSorted()
  } catch {
    return []
  }
}

const pathOf = ({ PATH = '' }: Places['env']): string[] => PATH.split(delimiter).filter((place) => place !== '')

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
