/**
 * Files of ended tasks for tasks of another runtime service: their size, their hash, and the bundle itself.
 *
 * A task whose files are read so is held, like one whose files are copied here.
 */
import type { BundleSummary } from '../../shared/contract/file-bundles.ts'
import { callerLeftError } from '../../shared/http/request-body.ts'
import { RequestFault } from '../../shared/request/fault.ts'
import { checkFile, namesOfFile, ofMissingTask, type TaskFiles, WHOLE_WORKSPACE } from '../../shared/request/inputs.ts'
import {
  archiveChunks,
  archiveOutline,
  bundleChunks,
  bundleDigest,
  bundleSize,
  CHANGED,
  type Chunks,
} from '../files/bundle.ts'
import { sourceText } from '../files/filled-workspace.ts'
import { tarForm } from '../files/tar.ts'
import { taskDir } from '../files/task-dir.ts'
import { CopyAmount, CopyFault } from '../files/tree-walk.ts'
import { walkWorkspace } from '../files/workspace-walk.ts'
import { ensureFiles } from '../plan/request.ts'
import { invalidInput, Refusal } from '../refusal.ts'
import type { TaskRow } from '../store/tasks.ts'
import type { Context } from './context.ts'

type BundlesContext = Context<'store' | 'holds' | 'dataDir', 'maxInputFiles' | 'maxInputBytes'>

/** A tar of files, as a walk finds it. */
export interface Tar {
  readonly bytes: number
  /** Changes with the bytes. */
  readonly version: string
  /** The bytes from `from` up to `to`. The reader calls `return` unless it reads all of them. */
  chunks(from: number, to: number): Chunks
}

/** The outermost entry of a bundle has no name. */
const NO_NAME = Buffer.of()

export class Bundles {
  readonly #context: BundlesContext

  constructor(context: BundlesContext) {
    this.#context = context
  }

  /** Without the hash, which takes as long as reading the files. Throws a `Refusal`. */
  async size(source: TaskFiles, signal: AbortSignal): Promise<BundleSummary> {
    const { tenant } = this.#checked(source)
    using _ = this.#context.holds.holdForOthers(source.task_id)
    const { walk } = this.#walk(source, signal)
    const size = await refusing(source, bundleSize(walk))
    return { ...size, ...(tenant !== null && { tenant }) }
  }

  async digest(source: TaskFiles, signal: AbortSignal): Promise<BundleSummary> {
    const { tenant } = this.#checked(source)
    using _ = this.#context.holds.holdForOthers(source.task_id)
    const { walk, reading } = this.#walk(source, signal)
    const digest = await refusing(source, bundleDigest(walk, reading))
    return { ...digest, ...(tenant !== null && { tenant }) }
  }

  /** The bytes of the bundle. The reader calls `return` unless it reads all of it. */
  chunks(source: TaskFiles, signal: AbortSignal): Chunks {
    return this.#chunks(source, signal, NO_NAME, bundleChunks)
  }

  /** The same as a tar, whose outermost entry has the last name of the path. Reads no file. Throws a `Refusal`. */
  async tar(source: TaskFiles, signal: AbortSignal): Promise<Tar> {
    const name = source.file === WHOLE_WORKSPACE ? 'workspace' : (namesOfFile(source.file).at(-1) ?? '')
    const as = Buffer.from(name)
    this.#checked(source)
    using _ = this.#context.holds.holdForOthers(source.task_id)
    const { walk, reading } = this.#walk(source, signal, as)
    const outline = await refusing(source, archiveOutline(walk, reading, tarForm()))
    return {
      bytes: outline.bytes,
      version: outline.hash,
      chunks: (from, to) =>
        this.#chunks(source, signal, as, (walk, reading) =>
          archiveChunks(walk, reading, tarForm(), { outline, from, to }),
        ),
    }
  }

  async *#chunks(source: TaskFiles, signal: AbortSignal, as: Buffer, chunksOf: typeof bundleChunks): Chunks {
    this.#checked(source)
    using _ = this.#context.holds.holdForOthers(source.task_id)
    const { walk, reading } = this.#walk(source, signal, as)
    try {
      yield* chunksOf(walk, reading)
    } catch (error) {
      throw refusalOf(source, error)
    }
  }

  #walk({ task_id, file }: TaskFiles, signal: AbortSignal, as: Buffer = NO_NAME) {
    const { dataDir, config } = this.#context
    const limits = { files: config.maxInputFiles, bytes: config.maxInputBytes }
    const check = () => {
      if (signal.aborted) throw callerLeftError()
    }
    const reading = { amount: new CopyAmount(limits), check }
    return { walk: walkWorkspace(taskDir(dataDir, task_id), file, as, reading), reading }
  }

  /** Throws a `Refusal` if the task has no files for others. */
  #checked({ task_id, file }: TaskFiles): TaskRow {
    const { store, holds } = this.#context
    ensureFiles({ inputs: {} }, process.platform)
    const row = store.get(task_id)
    if (row === undefined) {
      const message = `there is no task ${task_id}, or it was removed with its files: run it again`
      throw new Refusal('not_found', message, ofMissingTask(task_id))
    }
    checkPath(file)
    if (store.liveTask(task_id) !== undefined) throw new Refusal('conflict', `task ${task_id} has not ended`)
    if (holds.removalOf(task_id) === undefined) return row
    const message = `task ${task_id} is being removed with its files: run it again`
    throw new Refusal('not_found', message, ofMissingTask(task_id))
  }
}

function checkPath(file: string): void {
  try {
    checkFile('file', file)
  } catch (error) {
    throw error instanceof RequestFault ? invalidInput(error.message) : error
  }
}

async function refusing<T>(source: TaskFiles, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw refusalOf(source, error)
  }
}

function refusalOf(source: TaskFiles, error: unknown): unknown {
  if (!(error instanceof CopyFault)) return error
  const message = `${sourceText(source)} ${error.message}`
  return error.message === CHANGED ? new Refusal('unavailable', `${message}: try again`) : invalidInput(message)
}
