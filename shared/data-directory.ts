/** Which directories a service may not have for its own. */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { UsageError } from './errors.ts'

/** What programs, and so sandboxes, cannot do without: they hide the data directory of the service. */
const SYSTEM_DIRECTORIES = [
  ...['/bin', '/boot', '/dev', '/etc', '/lib', '/lib32', '/lib64', '/libx32'],
  ...['/proc', '/sbin', '/sys', '/usr'],
]

/** Throws `UsageError` for a directory that is, or holds, one of the system's, whichever link leads there. */
export function refuseSystemDirectory(dataDir: string): void {
  const path = realPath(resolve(dataDir))
  const system = SYSTEM_DIRECTORIES.map((directory) => ({ directory, real: realPath(directory) }))
  const held = system.find(({ real }) => isWithin(real, path))?.directory
  if (held === undefined) return
  const fault = system.some(({ real }) => real === path) ? 'is a directory of the system' : `holds ${held}`
  throw new UsageError(
    `--data-dir ${dataDir} ${fault}: the files of a service need a directory of their own, such as ${EXAMPLE}`,
  )
}

const EXAMPLE = '/var/lib/taskmill'

const isWithin = (path: string, top: string): boolean => `${path}/`.startsWith(top === '/' ? top : `${top}/`)

/** The path itself where nothing is there: then it holds nothing either. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
