/**
 * Temporary directories of commands.
 *
 * Their names say which process made them, so that a later run finds those of a killed one.
 */
import { lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../shared/contract/errors.ts'
import { isThere, pidNamespace } from '../../shared/process/processes.ts'

/** Purposes of the directories. */
const KINDS = ['doctor', 'escape', 'sandbox'] as const
export type OwnDirKind = (typeof KINDS)[number]

const NAME = new RegExp(`^taskmill-(?:${KINDS.join('|')})-(\\d+)-([a-z0-9]+)-`)

/** Makes a directory in `parent`, and returns its real path. Throws the system's error. */
export const ownDirIn = (parent: string, kind: OwnDirKind): string =>
  realpathSync(mkdtempSync(join(parent, `taskmill-${kind}-${process.pid}-${pidNamespace()}-`)))

/** The same in the directory for temporary files. Throws `UsageError` where none can be made. */
export function ownDir(kind: OwnDirKind): string {
  try {
    return ownDirIn(tmpdir(), kind)
  } catch (error) {
    throw new UsageError(
      `cannot make a temporary directory in ${tmpdir()}: ${messageOf(error)} (set TMPDIR to one that can be written)`,
    )
  }
}

/** Removes the directories of dead processes in `parents` and among temporary files, as far as that is possible. */
export function removeLeftDirs(parents: readonly string[] = []): void {
  for (const parent of new Set([tmpdir(), ...parents])) for (const path of leftIn(parent)) remove(path)
}

function leftIn(parent: string): string[] {
  try {
    return readdirSync(parent)
      .filter(isLeft)
      .map((name) => join(parent, name))
  } catch {
    return [] // it does not exist, or we may not read it
  }
}

/**
 * Whether the process that made it is dead. Directories of another pid namespace (a container) are left to commands in
 * there.
 */
function isLeft(name: string): boolean {
  const [, pid, namespace] = NAME.exec(name) ?? []
  return pid !== undefined && namespace === pidNamespace() && !isThere(Number(pid))
}

/** Checks the owner, because any user can create a directory of that name in /tmp. */
function remove(path: string): void {
  try {
    const { uid } = lstatSync(path)
    if (uid === process.getuid?.()) rmSync(path, { recursive: true, force: true })
  } catch {
    // another process was faster, or the disk refuses
  }
}
