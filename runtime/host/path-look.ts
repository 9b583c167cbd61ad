/** The facts about a path, and the thread that finds them (`path-looks.ts`). */
import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import { isWithin } from '../../shared/files/is-within.ts'

export type PathInfo =
  | { readonly isThere: true; readonly isDirectory: boolean; readonly realPath: string }
  | { readonly isThere: false }
  /** The host does not follow the path. `code` is the system's, where there is one. */
  | { readonly code?: string; readonly message: string }

/** A request to the thread. */
export interface LookRequest {
  readonly path: string
  /** Real paths that do not answer. Nothing at or below them is accessed. */
  readonly avoid: readonly string[]
}

/**
 * Messages of the thread: any number of `asking`, each before a file system is accessed at that real path, then one of
 * the others.
 */
export type LookAnswer<Answer = PathInfo> =
  | { readonly asking: string }
  | { readonly avoided: string }
  | { readonly look: Answer }

/** Most symbolic links on a path, as in the kernel. */
const MAX_LINKS = 40

/** Called before a file system is accessed at a real path. Returns true to stop there. */
export type Ask = (realPath: string) => boolean

/**
 * Follows the path name by name, links included, so that the place which does not answer is known. May never return.
 * Never throws. Undefined when `ask` stopped it.
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

/** This thread. */
declare const self: Pick<Worker, 'onmessage'> & { postMessage(answer: LookAnswer<unknown>): void }

/** Makes this worker answer each path that it is sent with `check(path)`, unless `ask` stopped it. */
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
