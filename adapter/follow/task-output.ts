/** Reads the output of a task, both streams at the same time. */
import { BoundedOutput } from '../../shared/bounded-output.ts'
import type { ServiceClient } from '../../shared/http-client.ts'

/** Bytes of each stream in the answer. The whole log is at the service. */
export const MAX_KEPT_BYTES = 16 * 1024 * 1024

const STREAMS = ['stdout', 'stderr'] as const

export class TaskOutput {
  readonly #client: ServiceClient
  readonly #outputs = { stdout: new BoundedOutput(MAX_KEPT_BYTES), stderr: new BoundedOutput(MAX_KEPT_BYTES) }
  #isCutByService = false

  constructor(client: ServiceClient) {
    this.#client = client
  }

  /**
   * Reads the log below `path`, the address of a task, to its end. `onChunk` gets what arrives, as it arrives. Throws
   * `CallFailed`, or the error of the connection. The text that was read until then is kept.
   */
  async read(
    path: string,
    query: URLSearchParams,
    onChunk: (chunk: Uint8Array) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const failed = new AbortController()
    const both = AbortSignal.any([signal, failed.signal])
    const reading = STREAMS.map(async (name) => {
      const { stream, headers } = await this.#client.open(`${path}/logs?stream=${name}&${query}`, {}, both)
      this.#isCutByService ||= headers.get('x-log-truncated') === 'true'
      for await (const chunk of stream) {
        this.#outputs[name].push(chunk)
        onChunk(chunk)
      }
    })
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
      truncated: this.#isCutByService || stdout.truncated || stderr.truncated,
    }
  }
}
