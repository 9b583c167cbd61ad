/**
 * Whether the service can take tasks: the data directory is the one it started with, and files and database can be
 * written.
 *
 * Writing is tried, since nothing else reveals a file system that was mounted read-only. Concurrent callers share a
 * probe, and its result is valid for a second. After the disk refused a submission, probes write as much as that
 * submission needed, until that succeeds or another submission is accepted.
 */
import { join } from 'node:path'
import { ServiceError } from '../../shared/contract/errors.ts'
import type { DirectoryGuard } from '../files/directory-guard.ts'
import { unavailable } from '../files/disk-fault.ts'
import { makeTaskDir, removeTaskDirNow, taskDirAt } from '../files/task-dir.ts'
import type { GroupCommit } from './group-commit.ts'

/** Milliseconds for which a result is valid. */
const FRESH_MS = 1_000

/**
 * Bytes that a submission needs besides its request, at most: blocks of its files, pages of the database and its log.
 */
const BESIDE_REQUEST_BYTES = 128 * 1024

/** Copies of a request on disk: in the directory of its task, in the log of the database, in the database. */
const COPIES = 3

export class Readiness {
  readonly #commit: GroupCommit
  readonly #directory: DirectoryGuard
  readonly #dataDir: string
  #checkedAt = Number.NEGATIVE_INFINITY
  #checking: Promise<void> | undefined
  /** Bytes of the last request that the disk refused. Undefined once one was accepted or there is room for it. */
  #refusedBytes: number | undefined
  /** Set when the service stops. */
  isStopping = false

  constructor(commit: GroupCommit, directory: DirectoryGuard, dataDir: string) {
    this.#commit = commit
    this.#directory = directory
    this.#dataDir = dataDir
  }

  /** A submission could not be written. */
  refused(requestBytes: number): void {
    this.#refusedBytes = requestBytes
  }

  /** A submission is on disk. */
  accepted(): void {
    this.#refusedBytes = undefined
  }

  /** Throws 503 with the reason when the service cannot take tasks. */
  async check(): Promise<void> {
    if (this.isStopping) throw stopping()
    this.#directory.ensure()
    const isWell = this.#commit.fault === undefined && this.#refusedBytes === undefined
    if (isWell && performance.now() - this.#checkedAt < FRESH_MS) return
    this.#checking ??= this.#probe().finally(() => {
      this.#checking = undefined
    })
    await this.#checking
  }

  async #probe(): Promise<void> {
    const refused = this.#refusedBytes
    const room = refused === undefined ? 1 : COPIES * refused + BESIDE_REQUEST_BYTES
    const probe = taskDirAt(join(this.#dataDir, '.probe'))
    try {
      makeTaskDir(probe, { request: 'x'.repeat(room), script: undefined, workspaceSubdir: '' })
      removeTaskDirNow(probe)
    } catch (error) {
      throw unavailable(error)
    }
    await this.#commit.probe()
    if (this.#refusedBytes === refused) this.#refusedBytes = undefined
    this.#checkedAt = performance.now()
  }
}

/** 503 for requests that arrive while the service stops. */
export const stopping = (): ServiceError => new ServiceError(503, 'the service is stopping: try again once it is back')
