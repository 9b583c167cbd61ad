/**
 * Whether tasks can be taken: the database and the directory of the tasks take a write now.
 *
 * It is tried, not guessed: a file system that was mounted read-only shows it nowhere else. Probes of many askers are
 * one: an answer counts for a second.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ServiceError } from '../../shared/errors.ts'
import { type GroupCommit, unavailable } from './group-commit.ts'

/** Milliseconds that an answer counts. */
const FRESH_MS = 1_000

export class Readiness {
  readonly #commit: GroupCommit
  readonly #dataDir: string
  #checkedAt = Number.NEGATIVE_INFINITY
  #checking: Promise<void> | undefined
  /** Set when the service goes down. */
  isStopping = false

  constructor(commit: GroupCommit, dataDir: string) {
    this.#commit = commit
    this.#dataDir = dataDir
  }

  /** Throws 503 with the reason when the service cannot take tasks. */
  async check(): Promise<void> {
    if (this.isStopping) throw stopping()
    if (performance.now() - this.#checkedAt < FRESH_MS && this.#commit.fault === undefined) return
    this.#checking ??= this.#probe().finally(() => {
      this.#checking = undefined
    })
    await this.#checking
  }

  async #probe(): Promise<void> {
    const path = join(this.#dataDir, '.probe')
    try {
      writeFileSync(path, 'x')
      rmSync(path)
    } catch (error) {
      throw unavailable(error)
    }
    await this.#commit.probe()
    this.#checkedAt = performance.now()
  }
}

/** 503: what is sent now would not be taken in before the end. */
export const stopping = (): ServiceError => new ServiceError(503, 'the service is stopping: try again once it is back')
