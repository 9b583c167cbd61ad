/**
 * Makes the workspace of a task that gets files.
 *
 * A new workspace is filled beside the empty one, where only the service can enter, and takes its place when it is complete.
 * So a task never starts with half of its files, and after a crash the work begins anew.
 */
import { closeSync, fchownSync, mkdirSync, renameSync } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import {
  type GivenContent,
  type InputSource,
  namesOfFile,
  type TaskFiles,
  WHOLE_WORKSPACE,
} from '../../shared/request/inputs.ts'
import { shortened } from '../../shared/request/text.ts'
import { type BundleCopySettings, copyBundle } from './bundle-copy.ts'
import type { Clone } from './file-copy.ts'
import { faultMessage, OpenDirectory } from './open-directory.ts'
import { discardIfThere, type TaskDir } from './task-dir.ts'
import { type Copied, copyContent, copyWalked } from './tree-copy.ts'
import { CopyAmount, CopyFault } from './tree-walk.ts'
import { walkWorkspace } from './workspace-walk.ts'

/** An input of a task. `path` is where it goes, in the workspace. */
export type FilledFrom = { readonly path: string } & (FilledFromTask | FilledFromBundle | GivenContent)

interface FilledFromTask extends TaskFiles {
  readonly source: TaskDir
}

interface FilledFromBundle {
  readonly staged: string
  /** A descriptor of the bundle, to be closed. Undefined if it is not there. */
  readonly open: () => number | undefined
}

export interface Filling {
  readonly dir: TaskDir
  /** The directory in the workspace that the task works in. */
  readonly workspaceSubdir: string
  /** The user of the task, if that is not the user of the service. */
  readonly owner: number | undefined
  readonly limits: { readonly files: number; readonly bytes: number }
  readonly clone: Clone
  /** Moves a directory with this path out of the way, to be removed later. */
  readonly discard: (path: string) => void
  /** Called often. What it throws ends the work. */
  readonly check: () => void
}

/** An input that cannot be had. The message names it. */
export class InputFault extends Error {
  override name = 'InputFault'
  constructor(
    message: string,
    readonly details?: Readonly<Record<string, string>>,
  ) {
    super(message)
  }
}

const MODE = 0o700

/** Copies all inputs, and returns what each had. Throws `InputFault`; then the workspace is as before. */
export async function fillWorkspace(filling: Filling, inputs: readonly FilledFrom[]): Promise<readonly Copied[]> {
  const { dir, owner, discard } = filling
  const path = `${dir.task_dir}/filled`
  discardIfThere(discard, path) // of an earlier service
  mkdirSync(path, { mode: MODE })
  try {
    using target = OpenDirectory.open(path)
    const amount = new CopyAmount(filling.limits)
    const copied: Copied[] = []
    for (const input of inputs) copied.push(await copyInput(filling, target, amount, input))
    makeWorkingDirectory(filling, target)
    if (owner !== undefined) fchownSync(target.fd, owner, owner)
    discardIfThere(discard, dir.workspace)
    renameSync(path, dir.workspace)
    return copied
  } catch (error) {
    discardIfThere(discard, path)
    throw error
  }
}

async function copyInput(filling: Filling, target: OpenDirectory, amount: CopyAmount, input: FilledFrom) {
  try {
    const names = namesOfFile(input.path)
    using parent = makeDirectories(target, names.slice(0, -1), filling.owner)
    const as = Buffer.from(names.at(-1)!)
    const settings = { ...filling, amount }
    if ('content' in input) return await copyContent(input.content, parent, as, settings)
    if ('open' in input) return await copyStaged(input, parent, as, settings)
    return await copyWalked(walkWorkspace(input.source, input.file, as, settings), parent, settings)
  } catch (error) {
    throw faultOf(input, error)
  }
}

async function copyStaged(
  { staged, open }: FilledFromBundle,
  parent: OpenDirectory,
  as: Buffer,
  settings: BundleCopySettings,
): Promise<Copied> {
  const fd = open()
  if (fd === undefined) throw new CopyFault('is not there any more')
  try {
    return await copyBundle({ fd, sha256: staged }, parent, as, settings)
  } finally {
    closeSync(fd)
  }
}

function faultOf(input: FilledFrom, error: unknown): unknown {
  const at = `inputs.${shortened(input.path)}`
  const what = sourceText(input)
  if (error instanceof CopyFault) return new InputFault(`${at}: ${what} ${error.message}`)
  if (systemCodeOf(error) === undefined) return error
  return new Error(`cannot copy ${what} to ${at}: ${faultMessage(error)}`, { cause: error })
}

/** `dist of task build-7` */
export function sourceText(source: InputSource): string {
  if ('content' in source) return 'its content'
  if ('staged' in source) return `the staged bundle ${source.staged}`
  return `${source.file === WHOLE_WORKSPACE ? 'the workspace' : shortened(source.file)} of task ${source.task_id}`
}

/** The directory `names` below `directory`, which the caller closes. Makes those that are missing. */
function makeDirectories(directory: OpenDirectory, names: readonly string[], owner: number | undefined): OpenDirectory {
  let at = OpenDirectory.open(directory.at('.'))
  for (const name of names) {
    using outer = at
    const isNew = tryMkdir(outer.at(name))
    const inner = outer.child(Buffer.from(name))
    if (inner === undefined) throw new InputFault(`an input is in the place of the directory ${shortened(name)}`)
    at = inner
    if (isNew && owner !== undefined) fchownSync(at.fd, owner, owner)
  }
  return at
}

function makeWorkingDirectory({ workspaceSubdir, owner }: Filling, target: OpenDirectory): void {
  try {
    makeDirectories(target, namesOfFile(workspaceSubdir), owner)[Symbol.dispose]()
  } catch (error) {
    throw error instanceof InputFault ? new InputFault(`sandbox.workspace_subdir: ${error.message}`) : error
  }
}

function tryMkdir(path: Buffer): boolean {
  try {
    mkdirSync(path, { mode: MODE })
    return true
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false
    throw error
  }
}
