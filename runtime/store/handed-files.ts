/**
 * Files that a task with a user of its own gets for its life, and gives back at its end.
 *
 * Nothing of the task runs before and after, so no other entry gets into the place of one that was looked at. Trees may be
 * deeper than the longest path: directories are entered by one name at a time, and one descriptor is open.
 */
import { chownSync, lchownSync, lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { runCooperatively, type Steps } from '../../shared/steps.ts'
import { OpenDirectory } from './open-directory.ts'
import type { TaskDir } from './task-dir.ts'

const NAME_ENCODING = 'latin1'

/** Gives what the service made for a task to its user: the workspace down to the working directory, and the script. */
export function handOver({ workspace, script_path }: TaskDir, workspaceSubdir: string, uid: number): void {
  let path = workspace
  chownSync(path, uid, uid)
  for (const name of workspaceSubdir.split('/').filter((part) => part !== '' && part !== '.')) {
    path = join(path, name)
    chownSync(path, uid, uid)
  }
  if (lstatSync(script_path, { throwIfNoEntry: false }) !== undefined) chownSync(script_path, uid, uid)
}

/**
 * Makes the service the owner of all that a task has left. Files of others, which it can only have linked, are removed. The
 * kernel clears the bits that would run a file with the rights of its owner.
 */
export async function takeBack({ task_dir, script_path, workspace }: TaskDir, uid: number): Promise<void> {
  if (lstatSync(script_path, { throwIfNoEntry: false })?.uid === uid) lchownSync(script_path, 0, 0)
  if (lstatSync(workspace, { throwIfNoEntry: false }) === undefined) return
  using top = OpenDirectory.open(task_dir)
  takeEntry(top, Buffer.from('workspace'), uid)
  await runCooperatively(takeTree(workspace, uid, true))
}

/** What a task without a view of its own has left in these directories of the host, which everybody may write. */
const SHARED = ['/tmp', '/var/tmp', '/dev/shm', '/dev/mqueue']

export async function takeShared(uid: number): Promise<void> {
  for (const shared of SHARED) {
    if (lstatSync(shared, { throwIfNoEntry: false })?.isDirectory() !== true) continue
    for (const name of readdirSync(shared, { encoding: 'buffer' })) {
      const path = Buffer.concat([Buffer.from(`${shared}/`), name])
      const status = lstatSync(path, { throwIfNoEntry: false })
      if (status?.uid !== uid) continue
      if (shared === '/dev/mqueue') unlinkSync(path)
      else lchownSync(path, 0, 0)
      if (status.isDirectory()) await runCooperatively(takeTree(path, uid, false))
    }
  }
}

function* takeTree(path: string | Buffer, uid: number, removesForeign: boolean): Steps<void> {
  const levels: string[][] = []
  let at = OpenDirectory.open(path)
  const enter = function* (next: OpenDirectory): Steps<void> {
    at = next
    const directories: string[] = []
    levels.push(directories)
    for (const entries of at.entries()) {
      for (const { name } of entries) {
        if (takeEntry(at, name, uid, removesForeign)) directories.push(name.toString(NAME_ENCODING))
        yield
      }
    }
  }
  try {
    yield* enter(at)
    for (;;) {
      const name = levels.at(-1)!.pop()
      const outer = at
      if (name === undefined) {
        levels.pop()
        if (levels.length === 0) return
        at = OpenDirectory.open(outer.at('..'))
        outer[Symbol.dispose]()
      } else {
        const next = OpenDirectory.open(outer.at(Buffer.from(name, NAME_ENCODING)))
        outer[Symbol.dispose]()
        yield* enter(next)
      }
    }
  } finally {
    at[Symbol.dispose]()
  }
}

/** Whether the entry is a directory of the task. */
function takeEntry(directory: OpenDirectory, name: Buffer, uid: number, removesForeign = false): boolean {
  const path = directory.at(name)
  const status = lstatSync(path, { throwIfNoEntry: false })
  if (status === undefined) return false
  if (status.uid === uid) lchownSync(path, 0, 0)
  else if (removesForeign && !status.isDirectory()) unlinkSync(path)
  return status.uid === uid && status.isDirectory()
}
