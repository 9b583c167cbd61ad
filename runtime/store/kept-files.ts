/**
 * Reduces the workspace of an ended task to the files that it keeps.
 *
 * First the workspace is surveyed, then the rest is removed. Too many files are noticed before anything is removed. Doing it
 * again gives the same result, so a crash in between does no harm. Symlinks are kept and not followed.
 */
import { lstat, readdir } from 'node:fs/promises'
import { systemCodeOf } from '../../shared/errors.ts'
import type { OutputPatterns } from '../intake/output-patterns.ts'
import { removeTree } from './removal.ts'

/** Levels of directories below the workspace. Deeper files are not kept. */
const MAX_LEVELS = 64

/** One character for each byte of a name. */
const NAME_ENCODING = 'latin1'

export interface KeptLimits {
  readonly files: number
  readonly bytes: number
}

/** More than the limits: what there is at least. */
export type TooMuch = { readonly kind: 'files' | 'bytes' }

/** Removes all but the files that match. Returns why it removes nothing, if there are too many of them. */
export async function keepFiles(
  workspace: string,
  patterns: OutputPatterns,
  limits: KeptLimits,
): Promise<TooMuch | undefined> {
  if (!(await lstat(workspace)).isDirectory()) return undefined // a task has put something else there
  const survey = new Survey(patterns, limits)
  await survey.visit(Buffer.from(workspace), [], false)
  if (survey.tooMuch !== undefined) return survey.tooMuch
  for (const path of survey.rest) await removeTree(path)
  return undefined
}

class Survey {
  readonly rest: Buffer[] = []
  readonly #patterns: OutputPatterns
  readonly #limits: KeptLimits
  #files = 0
  #bytes = 0

  constructor(patterns: OutputPatterns, limits: KeptLimits) {
    this.#patterns = patterns
    this.#limits = limits
  }

  get tooMuch(): TooMuch | undefined {
    if (this.#files > this.#limits.files) return { kind: 'files' }
    return this.#bytes > this.#limits.bytes ? { kind: 'bytes' } : undefined
  }

  /** Whether anything in the directory is kept. `isKept`: everything is. */
  async visit(directory: Buffer, names: readonly string[], isKept: boolean): Promise<boolean> {
    const restBefore = this.rest.length
    let keepsAny = isKept
    for (const entry of await entriesOf(directory)) {
      const path = Buffer.concat([directory, Buffer.from(`/${entry.name}`, NAME_ENCODING)])
      const below = [...names, Buffer.from(entry.name, NAME_ENCODING).toString()]
      const isMatch = isKept || this.#patterns.matches(below)
      if (entry.isDirectory() && below.length <= MAX_LEVELS && (isMatch || this.#patterns.mayMatchBelow(below))) {
        if (await this.visit(path, below, isMatch)) keepsAny = true
      } else if (isMatch && (entry.isFile() || entry.isSymbolicLink())) {
        keepsAny = true
        this.#files++
        this.#bytes += (await lstat(path)).size
      } else this.rest.push(path)
      if (this.tooMuch !== undefined) return true
    }
    if (!keepsAny && names.length > 0) this.rest.splice(restBefore, Number.POSITIVE_INFINITY, directory)
    return keepsAny
  }
}

/** Nothing for a directory that the task has closed. */
async function entriesOf(directory: Buffer) {
  try {
    return await readdir(directory, { encoding: NAME_ENCODING, withFileTypes: true })
  } catch (error) {
    if (systemCodeOf(error) === 'EACCES') return []
    throw error
  }
}
