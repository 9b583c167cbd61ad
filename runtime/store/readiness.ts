/**
 * Whether tasks can be taken: the data directory is that of the start, and its files and the database take a write now.
 *
 * It is tried, not guessed: a file system that was mounted read-only shows it nowhere else. Probes of many callers are
 * one: an answer counts for a second. Submissions that the disk refused count as well: from then on a probe asks for the
 * room that the last one of them needed, until that is there or another submission is taken.
 */
import { join } from 'node:path'
import { ServiceError } from '../../shared/errors.ts'
import type { DirectoryGuard } from './directory-guard.ts'
import { type GroupCommit, unavailable } from './group-commit.ts'
import { makeTaskDir, removeTaskDirNow, taskDirAt } from './task-dir.ts'

/** Milliseconds that an answer counts. */
const FRESH_MS = 1_000

/** Bytes that a submission takes at most beside its request: blocks of its files, pages of the database and of its log. */
const BESIDE_REQUEST_BYTES = 128 * 1024

/** Times that a request is written: to its directory, to the log of the database, to the database. */
const COPIES = 3

export class Readiness {
  readonly #commit: GroupCommit
  readonly #directory: DirectoryGuard
  readonly #dataDir: string
  #checkedAt = Number.NEGATIVE_INFINITY
  #checking: Promise<void> | undefined
  /** Bytes of the request that the disk refused last; undefined since one was taken, or there is room for it. */
  #refusedBytes: number | undefined
  /** Set when the service goes down. */
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

/** 503: what is sent now would not be taken in before the end. */
export const stopping = (): ServiceError => new ServiceError(503, 'the service is stopping: try again once it is back')
