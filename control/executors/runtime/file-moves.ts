/**
 * Brings files of tasks from one runtime service to another.
 *
 * Control relays: the two need not reach or trust each other, and may have different tokens. A bundle streams from the source
 * into the staging area of the target, which verifies its hash; a slow target slows the source down, so control holds a few
 * chunks. Attempts that need the same bundle at the same place share one move, which ends when nobody waits for it any more.
 */

import type { BundleSummary } from '../../../shared/contract/file-bundles.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { unlessAborted } from '../../../shared/process/unless-aborted.ts'
import { asSource, BundleRelay, FilesChanged, MOVE_STALL_MS, type PlacedFiles } from './bundle-relay.ts'
import { stoppedError } from './outcome.ts'
import type { PoolMember } from './pool-member.ts'

/** Moves at the same time. Others wait. Each takes a few megabytes of memory. */
export const MAX_MOVES = 4

/** Hashes of bundles that are remembered. */
export const MAX_REMEMBERED_BUNDLES = 1_000

export type BundleDigest = BundleSummary & { readonly sha256: string }

/** What a move has done so far. */
export interface MoveProgress {
  readonly isWaiting: boolean
  readonly sentBytes: number
}

interface Move {
  readonly progress: { isWaiting: boolean; sentBytes: number }
  readonly done: Promise<void>
  readonly over: AbortController
  waiters: number
}

export class FileMoves {
  readonly #log: Log
  readonly #stallMs: number
  readonly #moves = new Map<string, Move>()
  #running = 0
  /** Called when a move has ended. */
  readonly #queue: (() => void)[] = []
  /** By runtime service, task and file. The files of an ended task do not change, unless by another task. */
  readonly #digests = new Map<string, BundleDigest>()
  /** Hashes that are being determined, which attempts share. */
  readonly #asked = new Map<string, Promise<BundleDigest>>()

  constructor(log: Log, stallMs: number = MOVE_STALL_MS) {
    this.#log = log
    this.#stallMs = stallMs
  }

  /** The size of a bundle. Throws `SourceFailed`. */
  async size({ member, files }: PlacedFiles, traceId: string, signal: AbortSignal): Promise<number> {
    const known = this.#digests.get(keyOf({ member, files }))
    if (known !== undefined) return known.bytes
    return (await asSource(member, member.service.bundleSize(files, traceId, signal))).bytes
  }

  /** The hash of a bundle. Throws `SourceFailed`. */
  async digest(from: PlacedFiles, traceId: string): Promise<BundleDigest> {
    const key = keyOf(from)
    const known = this.#digests.get(key) ?? this.#asked.get(key)
    if (known !== undefined) return await known
    const asked = asSource(from.member, from.member.service.bundleDigest(from.files, traceId))
    this.#asked.set(key, asked)
    try {
      const digest = await asked
      const [oldest] = this.#digests.keys()
      if (this.#digests.size >= MAX_REMEMBERED_BUNDLES) this.#digests.delete(oldest!)
      this.#digests.set(key, digest)
      return digest
    } finally {
      this.#asked.delete(key)
    }
  }

  /**
   * Stages the bundle of this hash at `to`. Throws `SourceFailed`, `FilesChanged`, or the `CallFailed` of the target.
   * `onBegin` gets the progress.
   */
  async move(from: PlacedFiles, to: PoolMember, sha256: string, { traceId, signal, onBegin }: MoveCall): Promise<void> {
    const key = `${to.name}\n${to.url}\n${sha256}`
    const move = this.#moves.get(key) ?? this.#begin(key, from, to, sha256, traceId)
    onBegin(move.progress)
    move.waiters++
    try {
      await unlessAborted(move.done, signal, stoppedError)
    } finally {
      if (--move.waiters === 0) {
        if (this.#moves.get(key) === move) this.#moves.delete(key)
        move.over.abort()
      }
    }
  }

  #begin(key: string, from: PlacedFiles, to: PoolMember, sha256: string, traceId: string): Move {
    const progress = { isWaiting: true, sentBytes: 0 }
    const over = new AbortController()
    const run = async () => {
      await this.#turn(over.signal)
      try {
        progress.isWaiting = false
        const began = performance.now()
        await new BundleRelay({ from, to, sha256, progress, stallMs: this.#stallMs }).run(traceId, over.signal)
        this.#log.info('files were brought to another runtime service', {
          ...{ trace_id: traceId, from: from.member.name, runtime: to.name, sha256 },
          ...{ bytes: progress.sentBytes, duration_ms: Math.round(performance.now() - began) },
        })
      } catch (error) {
        if (error instanceof FilesChanged) this.#digests.delete(keyOf(from))
        throw error
      } finally {
        this.#running--
        this.#queue.shift()?.()
      }
    }
    const done = run().finally(() => {
      if (this.#moves.get(key)?.over === over) this.#moves.delete(key)
    })
    const move = { progress, done, over, waiters: 0 }
    this.#moves.set(key, move)
    return move
  }

  /** Waits for a turn, which the caller has until it reduces `#running`. */
  async #turn(signal: AbortSignal): Promise<void> {
    while (this.#running >= MAX_MOVES) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#queue.push(resolve)
      try {
        await unlessAborted(promise, signal, stoppedError)
      } catch (error) {
        const place = this.#queue.indexOf(resolve)
        if (place < 0)
          this.#queue.shift()?.() // its turn goes to the next one
        else this.#queue.splice(place, 1)
        throw error
      }
    }
    this.#running++
  }
}

interface MoveCall {
  readonly traceId: string
  readonly signal: AbortSignal
  readonly onBegin: (progress: MoveProgress) => void
}

const keyOf = ({ member, files: { task_id, file } }: PlacedFiles): string =>
  JSON.stringify([member.name, member.url, task_id, file])
