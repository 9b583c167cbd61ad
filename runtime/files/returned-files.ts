/**
 * Moves files back to where they were, after an error. They go to directories that had them before, which needs no room on
 * the disk. What another task has put in the place of such a directory can be in the way.
 */
import { renameSync, rmdirSync } from 'node:fs'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { OutputPatterns } from '../plan/output-patterns.ts'
import { openTop, type Visitor, visitMatches, type WalkedDirectory } from './matching-files.ts'
import { mirroredDirectory } from './mirrored-directory.ts'
import type { OpenDirectory } from './open-directory.ts'

/** A resource that was missing, such as descriptors, may be there again soon. The pauses add up to 1.6 s. */
const MAX_TRIES = 6
const FIRST_PAUSE_MS = 50

const ALL_FILES = new OutputPatterns(['**'])

/** Moves all files below `from` to `to`, and removes `from`. Returns whether nothing is left there. Never rejects. */
export async function returnFiles(from: string, to: string): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      if (await runCooperatively(returning(from, to))) return true
    } catch {
      // The next try may find what this one lacked.
    }
    if (tries === MAX_TRIES) return false
    await Bun.sleep(FIRST_PAUSE_MS * 2 ** (tries - 1))
  }
}

function* returning(from: string, to: string): Steps<boolean> {
  using source = openTop(from)
  if (source === undefined) return true
  using target = openTop(to)
  if (target === undefined) return isDone(() => rmdirSync(from)) || isDone(() => renameSync(from, to))
  yield* visitMatches(source, ALL_FILES, new Returner(source, target))
  return isDone(() => rmdirSync(from))
}

class Returner implements Visitor {
  /** Where the files of a visited directory go to. */
  readonly #targets = new Map<OpenDirectory, OpenDirectory>()

  constructor(source: OpenDirectory, target: OpenDirectory) {
    this.#targets.set(source, target)
  }

  directory(found: WalkedDirectory): void {
    const outer = this.#targets.get(found.parent!.directory)
    if (outer === undefined) return
    isDone(() => this.#targets.set(found.directory, mirroredDirectory(outer, found)))
  }

  file({ directory }: WalkedDirectory, name: Buffer): void {
    const target = this.#targets.get(directory)
    if (target !== undefined) isDone(() => renameSync(directory.at(name), target.at(name)))
  }

  leave({ parent, name, directory }: WalkedDirectory): void {
    if (parent === undefined) return
    this.#targets.get(directory)?.[Symbol.dispose]()
    this.#targets.delete(directory)
    isDone(() => rmdirSync(parent.directory.at(name)))
  }
}

/** A file that cannot be moved stays, and so does its directory: then the last `rmdir` fails. */
function isDone(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
