/**
 * Reduces the workspace of an ended task to the files that it keeps.
 *
 * First the files that match are counted: of a task with too many of them nothing is moved. Then they are moved into a new
 * directory beside the workspace, which only the service can enter, and are checked there, out of reach of any task: what is
 * no regular file by then is not kept. At last the new directory takes the place of the workspace, and the old one goes with
 * all that is left in it. The work can be done again after a crash at any point. After an error the files are moved back.
 */
import { chmodSync, renameSync, type Stats, unlinkSync } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { OutputPatterns } from '../plan/output-patterns.ts'
import { openTop, type Visitor, visitMatches, type WalkedDirectory } from './matching-files.ts'
import { giveTo, makeDirectory, mirroredDirectory, PERMISSIONS } from './mirrored-directory.ts'
import { faultMessage, OpenDirectory } from './open-directory.ts'
import { returnFiles } from './returned-files.ts'
import { discardIfThere, type TaskDir } from './task-dir.ts'

export interface KeptAmount {
  readonly files: number
  /** Sizes of all files together. */
  readonly bytes: number
}

/** What is kept, or of what there is more than the limit. */
export type Reduced = { readonly kept: KeptAmount } | { readonly tooMuch: keyof KeptAmount }

export interface Reduction {
  readonly dir: TaskDir
  readonly patterns: OutputPatterns
  readonly limits: KeptAmount
  /** Closes the directory of the task to its user. */
  readonly close: () => void
  /** Moves a directory with this path out of the way, to be removed later. */
  readonly discard: (path: string | Buffer) => void
}

/** Mode bits that would give the rights of an owner to others. */
const SET_ID = 0o7000

/** Removes all but the files that match. With too many of them, or after an error, all files are where they were. */
export async function keepFiles(reduction: Reduction): Promise<Reduced> {
  try {
    const reduced = await reduce(reduction)
    if ('tooMuch' in reduced) await undo(reduction)
    return reduced
  } catch (error) {
    await undo(reduction, faultMessage(error))
    throw error
  }
}

/** Moves back what was moved, also by an earlier service. */
async function undo({ dir }: Reduction, cause = ''): Promise<void> {
  if (await returnFiles(keptDir(dir), dir.workspace)) return
  const words = 'some files could not be moved back: they are in the directory kept of the task'
  throw new Error(cause === '' ? words : `${cause}; ${words}`)
}

async function reduce(reduction: Reduction): Promise<Reduced> {
  const counted = await runCooperatively(count(reduction))
  if ('tooMuch' in counted) return counted
  const kept = await runCooperatively(move(reduction))
  replaceWorkspace(reduction)
  return { kept }
}

/** The new workspace while it is filled. */
const keptDir = ({ task_dir }: TaskDir): string => `${task_dir}/kept`

class Amount {
  #files = 0
  #bytes = 0
  /** Which limit is reached. */
  tooMuch: keyof KeptAmount | undefined
  readonly #limits: KeptAmount

  constructor(limits: KeptAmount) {
    this.#limits = limits
  }

  /** Counts a file, if there is room for it. */
  add(size: number): boolean {
    if (this.#files + 1 > this.#limits.files) this.tooMuch = 'files'
    else if (this.#bytes + size > this.#limits.bytes) this.tooMuch = 'bytes'
    if (this.tooMuch !== undefined) return false
    this.#files++
    this.#bytes += size
    return true
  }

  get kept(): KeptAmount {
    return { files: this.#files, bytes: this.#bytes }
  }
}

/**
 * Whether a file can be kept: a regular file of the owner of the workspace. A task with a user of its own may have linked a
 * file of another user.
 */
const isKept = (status: Stats, owner: number): boolean =>
  status.isFile() && (status.uid === owner || owner === process.getuid?.())

function* count({ dir, patterns, limits }: Reduction): Steps<Reduced> {
  const amount = new Amount(limits)
  for (const path of [keptDir(dir), dir.workspace]) {
    using top = openTop(path)
    if (top === undefined) continue
    const owner = top.status.uid
    const visitor: Visitor = {
      isReadOnly: true,
      directory: () => {},
      file: ({ directory }, name) =>
        directory.look(name, (_, status) => {
          if (isKept(status, owner)) amount.add(status.size)
        }),
      get isOver() {
        return amount.tooMuch !== undefined
      },
    }
    yield* visitMatches(top, patterns, visitor)
  }
  return amount.tooMuch === undefined ? { kept: amount.kept } : { tooMuch: amount.tooMuch }
}

/** Files that a task beside it adds meanwhile are kept up to the limit. */
function* move({ dir, patterns, limits, close, discard }: Reduction): Steps<KeptAmount> {
  const amount = new Amount(limits)
  using target = openNew(keptDir(dir))
  using counting = openTop(keptDir(dir))
  // What an earlier service has moved already.
  yield* visitMatches(counting!, patterns, {
    isReadOnly: true,
    directory: () => {},
    file: ({ directory }, name) => directory.look(name, (_, { size }) => amount.add(size)),
  })
  using top = openTop(dir.workspace)
  if (top === undefined) return amount.kept
  yield* visitMatches(top, patterns, new Mover(top, target, amount, discard))
  close() // the owner of the workspace could enter the new one next
  giveTo(target, top.status)
  return amount.kept
}

/** Errors of a move that say that something else is in one of the two places by now. */
const IN_THE_WAY: readonly string[] = ['ENOENT', 'ENOTDIR', 'EISDIR', 'EEXIST', 'ENOTEMPTY', 'ELOOP']

class Mover implements Visitor {
  readonly #owner: number
  readonly #amount: Amount
  readonly #discard: Reduction['discard']
  /** The directories that files of a visited directory go to. */
  readonly #targets = new Map<OpenDirectory, OpenDirectory>()

  constructor(top: OpenDirectory, target: OpenDirectory, amount: Amount, discard: Reduction['discard']) {
    this.#owner = top.status.uid
    this.#amount = amount
    this.#discard = discard
    this.#targets.set(top, target)
  }

  get isOver(): boolean {
    return this.#amount.tooMuch !== undefined
  }

  directory(found: WalkedDirectory): void {
    this.#targetOf(found)
  }

  file(where: WalkedDirectory, name: Buffer): void {
    const isFile = where.directory.look(name, (_, status) => isKept(status, this.#owner))
    if (isFile !== true) return
    const target = this.#targetOf(where)
    try {
      renameSync(where.directory.at(name), target.at(name))
    } catch (error) {
      if (IN_THE_WAY.includes(systemCodeOf(error) ?? '')) return
      throw error
    }
    target.look(name, (itself, status) => this.#check(target, name, itself, status))
  }

  /** Another entry may have been in the place of the file when it was moved. */
  #check(target: OpenDirectory, name: Buffer, itself: string, status: Stats): void {
    if (isKept(status, this.#owner)) {
      if ((status.mode & SET_ID) !== 0) chmodSync(itself, status.mode & PERMISSIONS)
      if (this.#amount.add(status.size)) return
    }
    if (status.isDirectory()) this.#discard(target.at(name))
    else unlinkSync(target.at(name))
  }

  /** Makes the directories on the way. */
  #targetOf(where: WalkedDirectory): OpenDirectory {
    const missing: WalkedDirectory[] = []
    let at = where
    let target = this.#targets.get(at.directory)
    while (target === undefined) {
      missing.push(at)
      at = at.parent!
      target = this.#targets.get(at.directory)
    }
    for (const next of missing.reverse()) {
      target = mirroredDirectory(target, next)
      this.#targets.set(next.directory, target)
    }
    return target
  }

  leave({ parent, directory }: WalkedDirectory): void {
    if (parent === undefined) return
    this.#targets.get(directory)?.[Symbol.dispose]()
    this.#targets.delete(directory)
  }
}

/** There may be one from an earlier service. */
function openNew(path: string): OpenDirectory {
  makeDirectory(path)
  return OpenDirectory.open(path, true)
}

/** A crash in between leaves no workspace, and then the next service has nothing to move. */
function replaceWorkspace({ dir, discard }: Reduction): void {
  discardIfThere(discard, dir.workspace)
  renameSync(keptDir(dir), dir.workspace)
}
