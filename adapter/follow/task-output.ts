/**
 * Reads the output of a task, both streams at the same time.
 *
 * A followed stream is read one attempt at a time. Each answer says which attempt it is and at which byte it begins, so
 * the client can ask for the rest after a lost connection.
 */
import { BoundedOutput } from '../../shared/bounded-output.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import type { ServiceClient } from '../../shared/http-client.ts'
import { unlessAborted } from '../../shared/unless-aborted.ts'
import { type LogStreamRequest, logStream } from './log-stream.ts'
import { Outage } from './outage.ts'

/** Bytes of each stream in the answer. The whole log is at the service. */
export const MAX_KEPT_BYTES = 16 * 1024 * 1024

/** Milliseconds before another request after an answer without a byte: the service may be about to stop. */
const EMPTY_ANSWER_PAUSE_MS = 100

const STREAMS = ['stdout', 'stderr'] as const

export interface OutputRequest {
  /** The path of the task's routes. */
  readonly path: string
  /** Lines of each stream to begin with. Undefined: all. */
  readonly tail: number | undefined
  /** Go on until the task has ended, through restarts of the service. */
  readonly isFollowed: boolean
  /** Gets what arrives, as it arrives. */
  readonly onChunk: (chunk: Uint8Array) => void
  /** Called with a sentence when the connection is lost. */
  readonly onOutage: (notice: string) => void
  readonly signal: AbortSignal
}

export class TaskOutput {
  readonly #client: ServiceClient
  readonly #outputs = { stdout: new BoundedOutput(MAX_KEPT_BYTES), stderr: new BoundedOutput(MAX_KEPT_BYTES) }
  #streams: readonly OutputStream[] = []

  constructor(client: ServiceClient) {
    this.#client = client
  }

  /** Throws `CallFailed`, or the error of the connection. The text that was read until then is kept. */
  async read(request: OutputRequest): Promise<void> {
    const failed = new AbortController()
    const signal = AbortSignal.any([request.signal, failed.signal])
    const outage = new Outage(signal, request.onOutage)
    this.#streams = STREAMS.map(
      (name) => new OutputStream(this.#client, name, this.#outputs[name], { ...request, signal }),
    )
    const reading = this.#streams.map((stream) => (request.isFollowed ? stream.follow(outage) : stream.readOnce()))
    try {
      await Promise.all(reading)
    } catch (error) {
      failed.abort(error)
      await Promise.allSettled(reading)
      throw error
    }
  }

  text(): { readonly stdout: string; readonly stderr: string; readonly truncated: boolean } {
    const [stdout, stderr] = [this.#outputs.stdout.text(), this.#outputs.stderr.text()]
    return {
      stdout: stdout.text,
      stderr: stderr.text,
      truncated: stdout.truncated || stderr.truncated || this.#streams.some(({ isCutByService }) => isCutByService),
    }
  }
}

/** A stream and the position up to which it was read. */
class OutputStream {
  readonly #client: ServiceClient
  readonly #name: string
  readonly #output: BoundedOutput
  readonly #request: OutputRequest
  /** The attempt whose output is read; 0 before the first one. */
  #attempt = 0
  /** Bytes of its output that were read or left out. */
  #offset = 0
  isCutByService = false

  constructor(client: ServiceClient, name: string, output: BoundedOutput, request: OutputRequest) {
    this.#client = client
    this.#name = name
    this.#output = output
    this.#request = request
  }

  readOnce(): Promise<void> {
    return this.#readAnswer({}, () => {})
  }

  /** Returns once the task has ended and all of its output was read. */
  async follow(outage: Outage): Promise<void> {
    const { path, signal } = this.#request
    for (;;) {
      try {
        const from = this.#offset
        await this.#readAnswer({ follow: 'attempt' }, () => outage.over())
        // The end of an answer is that of the attempt, or of the service.
        const { status, attempt = 0 } = (await this.#client.call({ method: 'GET', path, signal })) as LookedAt
        if (isTerminal(String(status)) && attempt === this.#attempt) return
        if (this.#offset === from) await unlessAborted(Bun.sleep(EMPTY_ANSWER_PAUSE_MS), signal, () => signal.reason)
      } catch (error) {
        await outage.lost(error)
      }
    }
  }

  async #readAnswer(how: Readonly<Record<string, string>>, onOpen: () => void): Promise<void> {
    const { path, onChunk, signal, isFollowed } = this.#request
    const query = new URLSearchParams({ stream: this.#name, ...how, ...this.#start() })
    const request = { path: `${path}/logs?${query}`, isFollowed, signal, onOpen, onBegin: this.#begin }
    for await (const chunk of logStream(this.#client, request)) {
      this.#output.push(chunk)
      this.#offset += chunk.length
      onChunk(chunk)
    }
  }

  readonly #begin: LogStreamRequest['onBegin'] = ({ attempt = 0, offset, truncated }) => {
    this.#attempt = attempt
    this.#offset = offset
    this.isCutByService ||= truncated
  }

  #start(): Readonly<Record<string, string>> {
    if (this.#attempt > 0) return { attempt: String(this.#attempt), offset: String(this.#offset) }
    const { tail } = this.#request
    return tail === undefined ? {} : { tail: String(tail) }
  }
}

/** The fields of a record that tell whether the task has ended. */
interface LookedAt {
  readonly status?: unknown
  readonly attempt?: number
}
