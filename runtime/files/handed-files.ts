/**
 * Files that a task with a user of its own gets for its life, and gives back at its end.
 *
 * A process of the task may have outlived it. So a walk enters directories by one name at a time and never through a link,
 * and fails where its way back leads elsewhere. Trees may be deeper than the longest path: one descriptor is open.
 */
import { chmodSync, chownSync, lchownSync, lstatSync, readdirSync, type Stats, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { OpenDirectory } from './open-directory.ts'
import { removeTree } from './removal.ts'
import { letNobodyPass, type TaskDir, tasksDir } from './task-dir.ts'

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
 * Lets the user of a task reach the workspace by its path, the only way without a view of its own. On the way nobody can list or
 * read anything, and nobody else enters the directory of the task.
 */
export function letPass(dataDir: string, { task_dir }: TaskDir, uid: number): void {
  for (const path of [dataDir, tasksDir(dataDir)]) chmodSync(path, 0o711)
  chownSync(task_dir, 0, uid)
  chmodSync(task_dir, 0o710)
}

/** The user may be that of another task next, which must not read or write the logs of this one. */
function close(dir: TaskDir): void {
  letNobodyPass(dir)
  chownSync(dir.task_dir, 0, 0)
}

/**
 * Makes the service the owner of all that a task has left. Files of others, which it can only have linked, are removed. The
 * kernel clears the bits that would run a file with the rights of its owner.
 *
 * The service may end in between, and then the next one does the rest. So the workspace itself becomes the service's once no
 * files of others are left in it: from then on a file of the service is a result of the task.
 */
export async function takeBack(dir: TaskDir, uid: number): Promise<void> {
  const { task_dir, script_path, workspace } = dir
  if (statusOf(task_dir)?.gid === uid) close(dir)
  if (ownerOf(script_path) === uid) lchownSync(script_path, 0, 0)
  if (ownerOf(workspace) === uid) {
    await runCooperatively(walk(workspace, removeForeign(uid)))
    lchownSync(workspace, 0, 0)
  }
  if (ownerOf(workspace) !== 0) return // gone, or of the next task with this id
  await runCooperatively(walk(workspace, take(uid)))
}

/** The same for a task that has not run: what lies in a workspace of the service is out of reach. */
export function takeBackUnused(dir: TaskDir): void {
  const { task_dir, script_path, workspace } = dir
  if (process.getuid?.() !== 0) return
  if ((statusOf(task_dir)?.gid ?? 0) !== 0) close(dir)
  for (const path of [script_path, workspace]) if (ownerOf(path) !== undefined) lchownSync(path, 0, 0)
}

const statusOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

const ownerOf = (path: string): number | undefined => statusOf(path)?.uid

type Visit = (path: Buffer, status: Stats) => void

const removeForeign =
  (uid: number): Visit =>
  (path, status) => {
    if (status.uid !== uid && !status.isDirectory()) unlinkSync(path)
  }

const take =
  (uid: number): Visit =>
  (path, status) => {
    if (status.uid === uid) lchownSync(path, 0, 0)
  }

/** Directories of the host that everybody may write, also a task without a view of its own. */
const SHARED = ['/tmp', '/var/tmp', '/dev/shm', '/dev/mqueue']

/**
 * Removes what a user has left there. Root does not take it over: where the kernel protects others from the links and files of
 * a user (fs.protected_symlinks, fs.protected_regular), it trusts those of root.
 */
export async function removeShared(uid: number): Promise<void> {
  for (const shared of SHARED) {
    if (lstatSync(shared, { throwIfNoEntry: false })?.isDirectory() !== true) continue
    for (const name of readdirSync(shared, { encoding: 'buffer' })) {
      const path = Buffer.concat([Buffer.from(`${shared}/`), name])
      if (lstatSync(path, { throwIfNoEntry: false })?.uid === uid) await removeTree(path)
    }
  }
}

/** A directory on the way of the walk, with those of its directories that are still to be entered. */
interface Level {
  readonly status: Stats
  readonly names: string[]
}

/** Visits all below a directory. */
function* walk(path: string, visit: Visit): Steps<void> {
  const levels: Level[] = []
  let at = OpenDirectory.open(path)
  const enter = function* (next: OpenDirectory): Steps<void> {
    at = next
    const names: string[] = []
    levels.push({ status: at.status, names })
    for (const entries of at.entries()) {
      for (const { name } of entries) {
        const path = at.at(name)
        const status = lstatSync(path, { throwIfNoEntry: false })
        if (status !== undefined) visit(path, status)
        if (status?.isDirectory()) names.push(name.toString(NAME_ENCODING))
        yield
      }
    }
  }
  try {
    yield* enter(at)
    for (;;) {
      const name = levels.at(-1)!.names.pop()
      const outer = at
      if (name === undefined) {
        levels.pop()
        const above = levels.at(-1)
        if (above === undefined) return
        at = OpenDirectory.open(outer.at('..'))
        outer[Symbol.dispose]()
        if (at.status.ino !== above.status.ino || at.status.dev !== above.status.dev) {
          throw new Error('a directory of the task was moved by a process of its user')
        }
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
