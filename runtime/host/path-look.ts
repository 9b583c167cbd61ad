/** What a thread of its own finds out about a path (`path-looks.ts`), and that thread. */
import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import { isWithin } from '../intake/is-within.ts'

export type PathInfo =
  | { readonly isThere: true; readonly isDirectory: boolean; readonly realPath: string }
  | { readonly isThere: false }
  /** The host will not follow the path; `code` is that of the system, where it is one. */
  | { readonly code?: string; readonly message: string }

/** What the thread is asked. */
export interface LookRequest {
  readonly path: string
  /** Real paths of places that do not answer: nothing at or below them is touched. */
  readonly avoid: readonly string[]
}

/** What the thread answers: any number of `asking`, each before a file system is asked for that real path, then one of the others. */
export type LookAnswer<Answer = PathInfo> =
  | { readonly asking: string }
  | { readonly avoided: string }
  | { readonly look: Answer }

/** Symbolic links of one path, as in the kernel. */
const MAX_LINKS = 40

/** Called before a file system is asked for a real path; true to ask for nothing more. */
export type Ask = (realPath: string) => boolean

/**
 * Follows the path name by name, links included, so that it is known which place does not answer. May take for ever. Never
 * throws; undefined when `ask` has ended it.
 */
export function lookAt(path: string, ask: Ask = () => false): PathInfo | undefined {
  try {
    return follow(path, ask)
  } catch (error) {
    const code = systemCodeOf(error)
    return { ...(code !== undefined && { code }), message: messageOf(error) }
  }
}

function follow(path: string, ask: Ask): PathInfo | undefined {
  const names = namesOf(path)
  let realPath = '/'
  let isDirectory = true
  for (let links = 0; ; ) {
    const name = names.shift()
    if (name === undefined) return { isThere: true, isDirectory, realPath }
    if (!isDirectory) return { code: 'ENOTDIR', message: `${realPath} is no directory` }
    if (name === '..') {
      realPath = dirname(realPath)
      continue
    }
    const next = join(realPath, name)
    if (ask(next)) return undefined
    const found = lstatSync(next, { throwIfNoEntry: false })
    if (found === undefined) return { isThere: false }
    if (found.isSymbolicLink()) {
      if (++links > MAX_LINKS) return { code: 'ELOOP', message: `too many links in ${path}` }
      const target = readlinkSync(next)
      names.unshift(...namesOf(target))
      if (target.startsWith('/')) realPath = '/'
      continue
    }
    isDirectory = found.isDirectory()
    realPath = next
  }
}

const namesOf = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.')

/** The present thread. */
declare const self: Pick<Worker, 'onmessage'> & { postMessage(answer: LookAnswer<unknown>): void }

/** Makes the present thread, a worker, answer each path that it is sent with `check(path)`, unless `ask` has ended that. */
export function servePathChecks(check: (path: string, ask: Ask) => unknown): void {
  self.onmessage = ({ data: { path, avoid } }: MessageEvent<LookRequest>) => {
    let isAvoided = false
    const ask = (realPath: string): boolean => {
      const avoided = avoid.find((place) => isWithin(realPath, place))
      isAvoided = avoided !== undefined
      self.postMessage(avoided === undefined ? { asking: realPath } : { avoided })
      return isAvoided
    }
    const look = check(path, ask)
    if (!isAvoided) self.postMessage({ look })
  }
}
