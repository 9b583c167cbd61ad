/**
 * Finds the program of a task, or says why there is none, as execve would. Bun starts it, but distinguishes fewer
 * reasons: it reports a missing working directory as a missing program.
 */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { attempt, Fault } from './fault.ts'

/** The directories to search without PATH. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'

/** Errors after which the search goes on in the next directory. */
const ELSEWHERE: readonly string[] = ['ENOENT', 'ENOTDIR', 'EACCES', 'ENAMETOOLONG']

/** The path of the program `name`. Throws a `Fault` of `workdir` or `exec`. */
export function findProgram(name: string, workdir: string, path: string | undefined): string {
  if (!attempt('workdir', () => statSync(workdir)).isDirectory()) throw new Fault('workdir', 'ENOTDIR')
  attempt('workdir', () => accessSync(workdir, constants.X_OK))
  if (name === '') throw new Fault('exec', 'ENOENT')
  if (name.includes('/')) return executable(resolve(workdir, name))
  let isForbidden = false
  for (const directory of (path ?? DEFAULT_PATH).split(':')) {
    try {
      return executable(join(resolve(workdir, directory), name))
    } catch (error) {
      if (!(error instanceof Fault) || !ELSEWHERE.includes(error.code)) throw error
      isForbidden ||= error.code === 'EACCES'
    }
  }
  throw new Fault('exec', isForbidden ? 'EACCES' : 'ENOENT')
}

/** `path`, if the kernel would execute it. */
function executable(path: string): string {
  if (!attempt('exec', () => statSync(path)).isFile()) throw new Fault('exec', 'EACCES')
  attempt('exec', () => accessSync(path, constants.X_OK))
  if (!hasKnownForm(path)) throw new Fault('exec', 'ENOEXEC')
  return path
}

/** `#!`, ELF, and for macOS Mach-O in both byte orders and universal binaries. */
const MAGICS: readonly string[] = ['7f454c46', 'cffaedfe', 'cefaedfe', 'feedfacf', 'feedface', 'cafebabe']

function hasKnownForm(path: string): boolean {
  const head = Buffer.alloc(4)
  try {
    const fd = openSync(path, 'r')
    readSync(fd, head)
    closeSync(fd)
  } catch (error) {
    return systemCodeOf(error) === 'EACCES' // a program may be executable but not readable
  }
  return head.toString('latin1', 0, 2) === '#!' || MAGICS.includes(head.toString('hex'))
}
