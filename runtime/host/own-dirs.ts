/**
 * Directories for the occasion: made by a command, and gone with it.
 *
 * Their names tell whose they are, so that a later run finds what one that was killed has left.
 */
import { lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/errors.ts'
import { isThere, pidNamespace } from '../../shared/processes.ts'

/** What they are for. */
const KINDS = ['doctor', 'escape', 'sandbox'] as const
export type OwnDirKind = (typeof KINDS)[number]

const NAME = new RegExp(`^taskmill-(?:${KINDS.join('|')})-(\\d+)-([a-z0-9]+)-`)

/** A new directory in `parent`, by its real path. Throws what the system says. */
export const ownDirIn = (parent: string, kind: OwnDirKind): string =>
  realpathSync(mkdtempSync(join(parent, `taskmill-${kind}-${process.pid}-${pidNamespace()}-`)))

/** The same where temporary files go. Throws `UsageError` where none can be made. */
export function ownDir(kind: OwnDirKind): string {
  try {
    return ownDirIn(tmpdir(), kind)
  } catch (error) {
    throw new UsageError(
      `cannot make a temporary directory in ${tmpdir()}: ${messageOf(error)} (set TMPDIR to one that can be written)`,
    )
  }
}

/** Removes what processes that are gone have left in `parents` and where temporary files go. What does not go stays. */
export function removeLeftDirs(parents: readonly string[] = []): void {
  for (const parent of new Set([tmpdir(), ...parents])) for (const path of leftIn(parent)) remove(path)
}

function leftIn(parent: string): string[] {
  try {
    return readdirSync(parent)
      .filter(isLeft)
      .map((name) => join(parent, name))
  } catch {
    return [] // it is not there, or not ours to look at
  }
}

/** Whether its owner is gone. What comes from another pid namespace, a container's, is for a command in there. */
function isLeft(name: string): boolean {
  const [, pid, namespace] = NAME.exec(name) ?? []
  return pid !== undefined && namespace === pidNamespace() && !isThere(Number(pid))
}

/** In /tmp everybody may have made one of that name: then it is theirs. */
function remove(path: string): void {
  try {
    const { uid } = lstatSync(path)
    if (uid === process.getuid?.()) rmSync(path, { recursive: true, force: true })
  } catch {
    // somebody else was quicker, or the disk does not let it go
  }
}
