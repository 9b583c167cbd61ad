/**
 * One bundle on its way from a runtime service to another. It is read as fast as the target takes it, so it needs little
 * memory. A fault says which runtime service is to blame.
 */

import { CallFailed } from '../../../shared/http/client.ts'
import { faultText } from '../../../shared/http/connection-fault.ts'
import type { TaskFiles } from '../../../shared/request/inputs.ts'
import { formatDuration } from '../../../shared/settings/duration.ts'
import type { PoolMember } from './pool-member.ts'

/** Milliseconds without a byte after which a move is broken off. */
export const MOVE_STALL_MS = 60_000

/** Milliseconds for the answer after the last byte: the target syncs all of the bundle. */
const SYNC_MS = 10 * 60_000

/** Milliseconds between two checks for a stall. */
const STALL_CHECK_MS = 1_000

/** Files of a task at its runtime service. */
export interface PlacedFiles {
  readonly member: PoolMember
  readonly files: TaskFiles
}

/** A call to the runtime service that has the files failed. */
export class SourceFailed extends Error {
  override name = 'SourceFailed'
  constructor(
    readonly member: PoolMember,
    override readonly cause: CallFailed,
  ) {
    super(cause.message)
  }
}

/** The bundle has another hash than before. */
export class FilesChanged extends Error {
  override name = 'FilesChanged'
}

export async function asSource<T>(member: PoolMember, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw error instanceof CallFailed ? new SourceFailed(member, error) : error
  }
}

export interface RelayOptions {
  readonly from: PlacedFiles
  readonly to: PoolMember
  readonly sha256: string
  readonly progress: { sentBytes: number }
  readonly stallMs: number
}

export class BundleRelay {
  readonly #options: RelayOptions
  readonly #broken = new AbortController()
  /** Whom the next byte depends on. `end`: the target has all. */
  #awaited: 'source' | 'target' | 'end' = 'source'
  #movedMs = performance.now()
  #fault: SourceFailed | CallFailed | undefined

  constructor(options: RelayOptions) {
    this.#options = options
  }

  async run(traceId: string, over: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([over, this.#broken.signal])
    const { from, to, sha256, stallMs } = this.#options
    const watch = setInterval(() => this.#checkStall(), Math.min(STALL_CHECK_MS, stallMs))
    try {
      const { member, files } = from
      const { stream } = await asSource(member, member.service.openBundle(files, traceId, signal))
      await to.service.stage(sha256, this.#relayed(stream), traceId, signal)
    } catch (error) {
      const fault = this.#fault ?? error
      const isRefused = fault instanceof CallFailed && fault.statusCode === 400
      throw isRefused ? new FilesChanged(fault.message) : fault
    } finally {
      clearInterval(watch)
      this.#broken.abort() // an answer may come before the target has read all
    }
  }

  /** The stream, with an account of it. */
  #relayed(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = stream.getReader()
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          this.#expect('source')
          try {
            const { done, value } = await reader.read()
            this.#expect(done ? 'end' : 'target')
            if (done) return controller.close()
            this.#options.progress.sentBytes += value.byteLength
            controller.enqueue(value)
          } catch (error) {
            this.#fault ??= this.#cut(faultText(error))
            throw error
          }
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
  }

  #expect(awaited: 'source' | 'target' | 'end'): void {
    this.#awaited = awaited
    this.#movedMs = performance.now()
  }

  #checkStall(): void {
    const isLast = this.#awaited === 'end'
    const { to, stallMs } = this.#options
    const limitMs = isLast ? SYNC_MS : stallMs
    if (performance.now() - this.#movedMs < limitMs) return
    const span = formatDuration(limitMs)
    if (this.#awaited === 'source') this.#fault = this.#cut(`no byte for ${span}`)
    else {
      const fault = isLast ? `no answer for ${span} after the bundle` : `took no byte of a bundle for ${span}`
      this.#fault = new CallFailed(`the runtime service at ${to.url}: ${fault}`, { fault })
    }
    this.#broken.abort()
  }

  #cut(fault: string): SourceFailed {
    const { member, files } = this.#options.from
    const message = `the bundle of task ${files.task_id} from ${member.url} broke off: ${fault}`
    return new SourceFailed(member, new CallFailed(message, { fault }))
  }
}
