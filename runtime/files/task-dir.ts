/**
 * The directory of a task, `<dataDir>/tasks/<task_id>/`: its request, result, output and workspace. Directories beside it
 * whose names begin with `+` are empty and wait for tasks (spare-dirs.ts).
 *
 * Its mode is 0700. Workspace and script of a task that runs as another user belong to that user while it runs
 * (handed-files.ts), who cannot reach the rest.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { removeTree } from './removal.ts'

export interface TaskDir {
  readonly task_dir: string
  readonly request_path: string
  readonly result_path: string
  readonly stdout_path: string
  readonly stderr_path: string
  readonly script_path: string
  readonly stdin_path: string
  readonly workspace: string
}

/** The file in the directory of a task that is its standard input. */
export const STDIN_NAME = 'stdin'

/** Absolute paths of the task's files; `dataDir` is absolute, `taskId` was checked (no separators, not `.` or `..`). */
export const taskDir = (dataDir: string, taskId: string): TaskDir => taskDirAt(`${dataDir}/tasks/${taskId}`)

/** The same for a directory at another path. */
export const taskDirAt = (task_dir: string): TaskDir => ({
  task_dir,
  request_path: `${task_dir}/request.json`,
  result_path: `${task_dir}/result.json`,
  stdout_path: `${task_dir}/stdout.log`,
  stderr_path: `${task_dir}/stderr.log`,
  script_path: `${task_dir}/script`,
  stdin_path: `${task_dir}/${STDIN_NAME}`,
  workspace: `${task_dir}/workspace`,
})

/**
 * Identity of the directory of a task, whose name may go to another task later: `INODE:NANOSECONDS` of its request
 * file, which is written once, and the time of its modification. Undefined without a request. task-dir.c computes the
 * same.
 */
export function taskDirId(taskDirPath: string): string | undefined {
  const status = lstatSync(join(taskDirPath, 'request.json'), { bigint: true, throwIfNoEntry: false })
  return status === undefined ? undefined : `${BigInt.asIntN(64, status.ino)}:${status.mtimeNs}`
}

/** Begins the name of a directory that waits. No task id has it. */
export const SPARE_MARK = '+'

/** `result.json` while it is written. */
export const RESULT_ASIDE = 'result.new'

export const tasksDir = (dataDir: string): string => join(dataDir, 'tasks')

export interface TaskDirContent {
  /** The request as it was accepted, JSON. */
  readonly request: string
  /** The text of a script. Undefined for a command. */
  readonly script: string | undefined
  /** The text on its standard input. Undefined for nothing. */
  readonly stdin?: string | undefined
  /** Relative to the workspace. Empty for the workspace itself. */
  readonly workspaceSubdir: string
}

/** A supply of directories. */
export interface Spares {
  /** Moves a directory with a workspace and empty files to the path of a task. False when there is none. */
  readonly take: (dir: TaskDir) => boolean
}

const NO_SPARES: Spares = { take: () => false }

/** Makes a directory that waits at this path, with all files that each task will have. When that fails nothing of it is left. */
export function makeSpareDir(dir: TaskDir): void {
  makeTaskDir(dir, { request: '', script: undefined, workspaceSubdir: '' })
  try {
    for (const name of ['outcome.new', RESULT_ASIDE]) writeFile(`${dir.task_dir}/${name}`, '', 'wx')
  } catch (error) {
    removeTaskDirNow(dir)
    throw error
  }
}

/** Makes the directory with all that a launch needs. When that fails nothing of it is left. */
export function makeTaskDir(dir: TaskDir, content: TaskDirContent, spares: Spares = NO_SPARES): void {
  const { request, script, stdin, workspaceSubdir } = content
  const isSpare = spares.take(dir)
  // A directory of this name belongs to no task: the caller has checked that the id is free.
  if (!isSpare && !tryMkdir(dir.task_dir)) {
    removeTaskDirNow(dir)
    mkdirSync(dir.task_dir, { mode: 0o700 })
  }
  try {
    if (!isSpare) mkdirSync(dir.workspace, { mode: 0o700 })
    makeSubdirs(dir.workspace, workspaceSubdir)
    writeFile(dir.request_path, request, isSpare ? EMPTY_FILE : 'wx')
    if (script !== undefined) writeFile(dir.script_path, script, 'wx', 0o700)
    if (stdin !== undefined) {
      writeFile(dir.stdin_path, stdin, 'wx')
      chmodSync(dir.stdin_path, 0o644) // so that a task with another user can open /dev/stdin again; nobody else gets that far
    }
    if (isSpare) return
    writeFile(dir.stdout_path, '', 'wx')
    writeFile(dir.stderr_path, '', 'wx')
  } catch (error) {
    removeTaskDirNow(dir)
    throw error
  }
}

const EMPTY_FILE = constants.O_WRONLY | constants.O_NOFOLLOW

/** Unlike this, `writeFileSync` would also truncate, which is slow on some file systems. */
function writeFile(path: string, text: string, flags: string | number, mode = 0o600): void {
  const fd = openSync(path, flags, mode)
  try {
    if (text !== '') writeWhole(fd, text)
  } finally {
    closeSync(fd)
  }
}

function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written)
}

/** Nothing else uses the directory yet. */
function makeSubdirs(workspace: string, subdir: string): void {
  let path = workspace
  for (const name of subdir.split('/').filter((part) => part !== '' && part !== '.')) {
    path = join(path, name)
    mkdirSync(path, { mode: 0o700 })
  }
}

export const hasWorkspace = ({ workspace }: TaskDir): boolean =>
  lstatSync(workspace, { throwIfNoEntry: false })?.isDirectory() === true

/** Closes a directory that a user was let into (handed-files.ts). */
export const letNobodyPass = ({ task_dir }: TaskDir): void => chmodSync(task_dir, 0o700)

/** Without O_TRUNC: ext4 writes a file to the disk at once that was truncated, even when it was empty. */
const RESULT_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Writes the result aside. A task of the process profile may have put a link or a pipe there, which must not be written to. */
export function draftResultFile({ task_dir }: TaskDir, text: string): void {
  const fd = openSync(`${task_dir}/${RESULT_ASIDE}`, RESULT_FLAGS, 0o600)
  try {
    if (fstatSync(fd).size > 0) ftruncateSync(fd) // of an earlier try
    writeWhole(fd, text)
  } finally {
    closeSync(fd)
  }
}

/** Puts the drafted result in its place. */
export const publishResultFile = ({ task_dir, result_path }: TaskDir): void =>
  renameSync(`${task_dir}/${RESULT_ASIDE}`, result_path)

function tryMkdir(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 })
    return true
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Removes the directory of a refused task, before its id is free. */
export const removeTaskDirNow = ({ task_dir }: TaskDir): void => rmSync(task_dir, { recursive: true, force: true })

/** Directories are moved here to free their names while they are removed. */
const trashDir = (dataDir: string): string => join(dataDir, 'trash')

/** Frees the name of a directory without a task at once, and returns its new path. `emptyTrash` removes the files. */
export const discardTaskDir = (dataDir: string, name: string): string => discard(dataDir, join(tasksDir(dataDir), name))

/** The same for what is at `path`. */
export function discard(dataDir: string, path: string | Buffer): string {
  const aside = join(trashDir(dataDir), crypto.randomUUID())
  for (let tries = 1; ; tries++) {
    mkdirSync(trashDir(dataDir), { mode: 0o700, recursive: true })
    try {
      renameSync(path, aside)
      return aside
    } catch (error) {
      // The start of the service may just have removed the directory that things are moved to.
      if (tries === MAX_DISCARD_TRIES || systemCodeOf(error) !== 'ENOENT' || !isThere(path)) throw error
    }
  }
}

/** Calls `discard`, unless nothing is at `path`. */
export function discardIfThere(discard: (path: string) => void, path: string): void {
  try {
    discard(path)
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error
  }
}

const MAX_DISCARD_TRIES = 3

const isThere = (path: string | Buffer): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

export const emptyTrash = (dataDir: string): Promise<void> => removeTree(trashDir(dataDir))

/** Removes a directory in which nothing runs. */
export const removeTaskDir = (dir: TaskDir): Promise<void> => removeTree(dir.task_dir)
