/** Walks a file or a directory that a path in the workspace of an ended task names. */
import { namesOfFile, WHOLE_WORKSPACE } from '../../shared/request/inputs.ts'
import { openTop } from './matching-files.ts'
import { OpenDirectory } from './open-directory.ts'
import type { TaskDir } from './task-dir.ts'
import {
  CopyFault,
  MISSING,
  sourceFault,
  type TreeWalk,
  type WalkSettings,
  walkDirectory,
  walkEntry,
} from './tree-walk.ts'

/** The steps get the name `as`. Throws `CopyFault`. */
export async function* walkWorkspace(
  { workspace: path }: TaskDir,
  file: string,
  as: Buffer,
  settings: Omit<WalkSettings, 'sourceUid'>,
): TreeWalk {
  try {
    yield* walkPath(path, file, as, settings)
  } catch (error) {
    throw sourceFault(error)
  }
}

async function* walkPath(path: string, file: string, as: Buffer, settings: Omit<WalkSettings, 'sourceUid'>): TreeWalk {
  using workspace = openTop(path, false)
  if (workspace === undefined) throw new CopyFault(MISSING)
  const withUid = { ...settings, sourceUid: workspace.status.uid }
  if (file === WHOLE_WORKSPACE) return yield* walkDirectory(workspace, as, withUid)
  const way = namesOfFile(file)
  using outer = descend(workspace, way.slice(0, -1))
  yield* walkEntry(outer, Buffer.from(way.at(-1)!), as, withUid)
}

/** The directory `names` below `directory`, which the caller closes. */
function descend(directory: OpenDirectory, names: readonly string[]): OpenDirectory {
  let at = OpenDirectory.open(directory.at('.'))
  for (const name of names) {
    using outer = at
    const inner = outer.child(Buffer.from(name))
    if (inner === undefined) throw new CopyFault(MISSING)
    at = inner
  }
  return at
}
