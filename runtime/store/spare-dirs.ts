/**
 * Directories for the next tasks: those of removed tasks, emptied, and a few that are made ahead.
 *
 * ext4 does not hand out an inode again for up to five minutes after it was freed, and each new file searches past all
 * of those. A busy service that removes as many tasks as it accepts then takes several times the time of the kernel. So
 * a removed task frees no inode: its directory, with the files that every task has, waits under a name that no task can
 * have.
 *
 * A few are also made ahead, while tasks run: making the directory of a task takes longer than all other work of the
 * service before its answer.
 *
 * Nothing of one task may reach another. Files and directories that a task can open are made anew: it could have given them
 * extended attributes, default rights or flags, which their content does not show. The directory is kept only if it is as a
 * task gets it, and if its outcome says that no process is left. The caller checks that no launcher is at work, and that the
 * task could not share an open file in another way.
 */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  type Stats,
  unlinkSync,
} from 'node:fs'
import { removeTree } from '../files/removal.ts'
import { makeSpareDir, RESULT_ASIDE, SPARE_MARK, type TaskDir, taskDirAt, tasksDir } from '../files/task-dir.ts'
import { isLogOpen } from './shared-log.ts'

/** Maximum waiting directories: more than a busy service removes at once. Each takes seven inodes and 8 KiB. */
export const MAX_SPARES = 2_000

/** Maximum directories that are made ahead: for as many tasks that come at once. */
export const MAX_STOCKED = 4

/** Maximum bytes of a file that is emptied. Truncating a larger one would hold up requests. */
const MAX_EMPTIED_BYTES = 64 * 1024

/** Bytes of a directory that never had many entries. */
const MAX_DIRECTORY_BYTES = 4096

/** The end of an outcome that left no process (outcome.h). */
const NOTHING_LEFT = '\nleftovers_alive=0\nend=1\n'

export class SpareDirs {
  readonly #tasksDir: string
  /** Prefix of the names. Directories that an earlier service left are strays. */
  readonly #prefix = `${SPARE_MARK}${crypto.randomUUID().slice(0, 8)}-`
  readonly #spares: string[] = []
  readonly #maxSpares: number
  #last = 0

  constructor(dataDir: string, maxSpares = MAX_SPARES) {
    this.#tasksDir = tasksDir(dataDir)
    this.#maxSpares = maxSpares
  }

  /** Whether a directory of this name waits here. */
  has(name: string): boolean {
    return name.startsWith(this.#prefix)
  }

  /** Moves a directory to the path of a task. False when there is none, or the path is taken. */
  take({ task_dir }: TaskDir): boolean {
    const spare = this.#spares.pop()
    if (spare === undefined) return false
    try {
      renameSync(spare, task_dir)
      return true
    } catch {
      return false // the caller makes a directory, or says why there can be none
    }
  }

  /** Makes a directory for the next task, unless enough of them wait. Never throws. */
  stock(): void {
    if (this.#spares.length >= MAX_STOCKED) return
    const spare = this.#nextPath()
    try {
      makeSpareDir(taskDirAt(spare))
      this.#spares.push(spare)
    } catch {
      // the task that needs one makes it, or says why there can be none
    }
  }

  /**
   * Empties and keeps the directory of an ended task, which frees its name. False when it has to be removed instead; part
   * of it may be empty then.
   */
  async keep(dir: TaskDir): Promise<boolean> {
    if (this.#spares.length >= this.#maxSpares) return false
    try {
      if (!isUsual(lstatSync(dir.task_dir)) || !isUsual(lstatSync(dir.workspace))) return false
      await removeTree(dir.workspace)
      mkdirSync(dir.workspace, { mode: 0o700 })
      if (!isEmptied(dir)) return false
      const spare = this.#nextPath()
      renameSync(dir.task_dir, spare)
      this.#spares.push(spare)
      return true
    } catch {
      return false // the task left something odd, or the disk is full: to remove it either works or says why
    }
  }

  #nextPath(): string {
    return `${this.#tasksDir}/${this.#prefix}${++this.#last}`
  }
}

/** Whether a directory has the rights that it was made with, and never had many entries. */
const isUsual = (status: Stats): boolean =>
  status.isDirectory() && (status.mode & 0o7777) === 0o700 && isOurs(status) && status.size <= MAX_DIRECTORY_BYTES

const isOurs = ({ uid }: Stats): boolean => uid === process.getuid?.()

/**
 * Empties the files of a task, under the names that they have before its start. False when one is missing, or is not as
 * expected.
 */
function isEmptied(dir: TaskDir): boolean {
  const missing = new Set(['request.json', 'stdout.log', 'stderr.log'])
  for (const name of readdirSync(dir.task_dir)) {
    missing.delete(name)
    const path = `${dir.task_dir}/${name}`
    switch (name) {
      case 'workspace':
        break
      case 'script':
        unlinkSync(path) // its length varies, and most tasks have none
        break
      case 'stdout.log':
      case 'stderr.log':
        if (!isFileEmptied(path, (_fd, status) => !isLogOpen(status), SHARED_MODES)) return false
        unlinkSync(path)
        closeSync(openSync(path, 'wx', 0o600))
        break
      case 'request.json':
        if (!isFileEmptied(path)) return false
        break
      case 'outcome':
        if (!isFileEmptied(path, saysNothingLeft)) return false
        renameSync(path, `${dir.task_dir}/outcome.new`)
        break
      case 'result.json':
        if (!isFileEmptied(path)) return false
        renameSync(path, `${dir.task_dir}/${RESULT_ASIDE}`)
        break
      default:
        return false
    }
  }
  return missing.size === 0
}

const FLAGS = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The modes of a log. The group of a sandbox may write it. */
const SHARED_MODES = [0o600, 0o660]

/** False when the file is not the plain one that the service or the launcher made, or is not `fit`. */
function isFileEmptied(
  path: string,
  fit: (fd: number, status: Stats) => boolean = () => true,
  modes: readonly number[] = [0o600],
): boolean {
  const fd = openSync(path, FLAGS)
  try {
    const status = fstatSync(fd)
    const isPlain = status.isFile() && status.nlink === 1 && modes.includes(status.mode & 0o7777) && isOurs(status)
    if (!isPlain || status.size > MAX_EMPTIED_BYTES || !fit(fd, status)) return false
    if (status.size > 0) ftruncateSync(fd)
    return true
  } finally {
    closeSync(fd)
  }
}

function saysNothingLeft(fd: number, { size }: Stats): boolean {
  const end = Buffer.alloc(NOTHING_LEFT.length)
  return readSync(fd, end, 0, end.length, Math.max(0, size - end.length)) > 0 && end.toString('latin1') === NOTHING_LEFT
}
