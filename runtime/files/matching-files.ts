/**
 * Finds the files below a directory that match patterns, in steps. The walk holds one open directory for each level, and no
 * recursion. It enters only directories below which something can match.
 */
import type { Steps } from '../../shared/process/steps.ts'
import { isMatch, type OutputPatterns, type Places } from '../plan/output-patterns.ts'
import { OpenDirectory } from './open-directory.ts'

/** Levels of directories below the top. What is deeper is not found. */
export const MAX_LEVELS = 64

/** A directory on the way of the walk. */
export interface WalkedDirectory {
  /** Undefined for the top. */
  readonly parent: WalkedDirectory | undefined
  readonly name: Buffer
  readonly directory: OpenDirectory
}

export interface Visitor {
  /** A file, or what was one when its directory was read. */
  file(where: WalkedDirectory, name: Buffer): void
  /** A directory that matches, of which everything below matches, too. */
  directory(found: WalkedDirectory): void
  /** All below a directory was visited. It is closed afterwards. */
  leave?(left: WalkedDirectory): void
  /** Whether the walk ends here. Asked for each entry. */
  readonly isOver?: boolean
  /** The visitor changes nothing, so files can be visited while their directory is read. Their names are not collected. */
  readonly isReadOnly?: true
}

/** What is still to visit is kept as names only: there may be millions of them. */
interface Level extends WalkedDirectory {
  /** The places that the way to this directory leads to. */
  readonly places: Places
  /** Entries that match, and are files as far as their directory knows. */
  readonly files: string[]
  /** Other entries that match, or below which something may match. */
  readonly directories: string[]
}

/** A character stands for a byte: names need not be valid text. */
const NAME_ENCODING = 'latin1'

/** Visits what matches below `top`, which the caller closes. */
export function* visitMatches(top: OpenDirectory, patterns: OutputPatterns, visitor: Visitor): Steps<void> {
  const levels: Level[] = []
  const enter = function* (where: WalkedDirectory, places: Places): Steps<void> {
    const level: Level = { ...where, places, files: [], directories: [] }
    levels.push(level)
    if (where.parent !== undefined && isMatch(places)) visitor.directory(level)
    for (const entries of where.directory.entries()) {
      for (const { name, kind } of entries) {
        const next = patterns.enter(places, name.toString())
        if (kind === 'file') {
          if (isMatch(next) && visitor.isReadOnly) visitor.file(level, name)
          else if (isMatch(next)) level.files.push(name.toString(NAME_ENCODING))
        } else if (kind !== 'other' && next.length > 0) level.directories.push(name.toString(NAME_ENCODING))
        if (visitor.isOver) return
        yield
      }
    }
  }
  const leave = () => {
    const left = levels.pop()!
    visitor.leave?.(left)
    if (left.directory !== top) left.directory[Symbol.dispose]()
  }
  try {
    yield* enter({ parent: undefined, name: Buffer.of(), directory: top }, patterns.start)
    for (let level = levels.at(-1); level !== undefined && !visitor.isOver; level = levels.at(-1)) {
      yield
      const file = level.files.pop()
      if (file !== undefined) {
        visitor.file(level, Buffer.from(file, NAME_ENCODING))
        continue
      }
      const next = level.directories.pop()
      if (next === undefined) {
        leave()
        continue
      }
      const name = Buffer.from(next, NAME_ENCODING)
      const places = patterns.enter(level.places, name.toString())
      const directory = levels.length > MAX_LEVELS ? undefined : level.directory.child(name, true)
      if (directory !== undefined) yield* enter({ parent: level, name, directory }, places)
      else if (isMatch(places)) visitor.file(level, name)
    }
  } finally {
    while (levels.length > 0) leave()
  }
}

/** Opens the directory at `path`, unless there is none. `isToOpen`: also if its mode forbids that. */
export function openTop(path: string, isToOpen = true): OpenDirectory | undefined {
  const slash = path.lastIndexOf('/')
  using parent = OpenDirectory.open(path.slice(0, slash))
  return parent.child(Buffer.from(path.slice(slash + 1)), isToOpen)
}
