/** Reads the output of a task, both streams at the same time. */

import type { ServiceClient } from '../../shared/http/client.ts'
import { BoundedOutput } from '../../shared/streams/bounded-output.ts'
import { followedLog } from '../../shared/streams/followed-log.ts'
import { type LogStreamRequest, logStream } from '../../shared/streams/log-stream.ts'
import { Outage } from './outage.ts'

/** Bytes of each stream in the answer. The whole log is at the service. */
export const MAX_KEPT_BYTES = 16 * 1024 * 1024

const STREAMS = ['stdout', 'stderr'] as const

export type OutputStreamName = (typeof STREAMS)[number]

export interface OutputRequest {
  /** The path of the task's routes. */
  readonly path: string
  /** Lines of each stream to begin with. Undefined: all. */
  readonly tail: number | undefined
  /** Go on until the task has ended, through restarts of the service. */
  readonly isFollowed: boolean
  /** Gets what arrives, as it arrives. Nothing more is read of that stream until it resolves. */
  readonly onChunk: (chunk: Uint8Array, stream: OutputStreamName) => void | Promise<void>
  /** Called with a sentence when the connection is lost. */
  readonly onOutage: (notice: string) => void
  readonly signal: AbortSignal
}

export class TaskOutput {
  readonly #client: ServiceClient
  readonly #outputs: Readonly<Record<OutputStreamName, BoundedOutput>>
  #streams: readonly OutputStream[] = []

  /** `maxKeptBytes`: those of each stream in `text`. */
  constructor(client: ServiceClient, maxKeptBytes = MAX_KEPT_BYTES) {
    this.#client = client
    this.#outputs = { stdout: new BoundedOutput(maxKeptBytes), stderr: new BoundedOutput(maxKeptBytes) }
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

/** A stream of the output. */
class OutputStream {
  readonly #client: ServiceClient
  readonly #name: OutputStreamName
  readonly #output: BoundedOutput
  readonly #request: OutputRequest
  isCutByService = false

  constructor(client: ServiceClient, name: OutputStreamName, output: BoundedOutput, request: OutputRequest) {
    this.#client = client
    this.#name = name
    this.#output = output
    this.#request = request
  }

  /** Returns once the task has ended and all of its output was read. */
  async follow(outage: Outage): Promise<void> {
    const { path, signal, tail, onChunk } = this.#request
    const source = {
      open: this.#client.open.bind(this.#client),
      look: (path: string) => this.#client.call({ method: 'GET', path, signal }),
    }
    const request = { path, stream: this.#name, tail, patience: outage, onBegin: this.#begin, signal }
    for await (const { bytes } of followedLog(source, request)) {
      this.#output.push(bytes)
      await onChunk(bytes, this.#name)
    }
  }

  async readOnce(): Promise<void> {
    const { path, onChunk, signal, tail } = this.#request
    const query = new URLSearchParams({ stream: this.#name, ...(tail !== undefined && { tail: String(tail) }) })
    const request = { path: `${path}/logs?${query}`, isFollowed: false, signal, onOpen: () => {}, onBegin: this.#begin }
    for await (const chunk of logStream(this.#client, request)) {
      this.#output.push(chunk)
      await onChunk(chunk, this.#name)
    }
  }

  readonly #begin: LogStreamRequest['onBegin'] = ({ truncated }) => {
    this.isCutByService ||= truncated
  }
}
