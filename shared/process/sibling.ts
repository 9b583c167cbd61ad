/** Finds our other executables: beside this one, else in PATH. */
import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Path of the executable `program`, or null. */
export function findSibling(program: string, path: string | undefined): string | null {
  const beside = join(ownDir(), program)
  return isExecutableFile(beside) ? beside : Bun.which(program, { PATH: path ?? '' })
}

export const siblingNotFound = (program: string): string =>
  `${program} was not found: neither in ${ownDir()} nor in PATH`

const ownDir = () => dirname(process.execPath)

function isExecutableFile(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() === true && (stat.mode & 0o111) !== 0
}
