/** What streams are read from: a connection to a service, of whichever client. Pure. */

export interface OpenStream {
  readonly headers: Headers
  readonly stream: ReadableStream<Uint8Array>
}

/** `open` sends a GET and resolves with a successful answer as it arrives. `signal` also ends the reading. */
export interface StreamSource {
  open(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<OpenStream>
}

/** The chunks of `stream`. Not every browser can iterate over streams. A caller that leaves early cancels the stream. */
export async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {}) // a broken stream has nothing to cancel
  }
}
