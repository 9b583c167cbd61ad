/**
 * One client of a stream of events, on a socket of its own.
 *
 * It counts what it needs to know when it has heard enough, and, if it is to be timed, keeps each piece with the time at
 * which it arrived. Nothing else is parsed meanwhile.
 */
import type { Socket } from 'bun'
import { get } from './requests.ts'

interface Piece {
  /** Milliseconds since 1970, with fractions. */
  readonly arrivedAt: number
  readonly text: string
}

const ENDED = 'event: graph_ended'
const STATUS_OK = 'HTTP/1.1 200 '

export class EventStream implements Disposable {
  #socket!: Socket
  #begun = Promise.withResolvers<void>()
  #hasBegun = false
  #pieces: Piece[] | undefined
  #endedGraphs = 0
  #wanted = Number.POSITIVE_INFINITY
  #isTold: () => void = () => {}

  /** Resolves once the first bytes of the stream have arrived. Throws unless they are those of a 200. */
  static async open(url: string, path: string): Promise<EventStream> {
    const { hostname, port } = new URL(url)
    const stream = new EventStream()
    const request = get(path)
    stream.#socket = await Bun.connect({
      hostname,
      port: Number(port || 80),
      socket: {
        open: (socket) => {
          socket.write(request)
        },
        data: (_socket, chunk) => stream.#received(chunk),
        close: () => stream.#begun.reject(new Error(`the server closed ${path}`)),
        error: (_socket, error) => stream.#begun.reject(error),
      },
    })
    await stream.#begun.promise
    return stream
  }

  /** Keeps what arrives from now on. */
  keepPieces(): void {
    this.#pieces = []
  }

  /** Resolves once the ends of `graphs` more graphs have arrived than at the last call. */
  async told(graphs: number): Promise<void> {
    const isTold = new Promise<void>((resolve) => {
      this.#isTold = resolve
    })
    this.#wanted = graphs
    this.#lookAtCount()
    await isTold
    this.#endedGraphs -= graphs
    this.#wanted = Number.POSITIVE_INFINITY
  }

  /** Milliseconds from the change that each kept event is about to its arrival. */
  delays(): number[] {
    const delays: number[] = []
    let rest = ''
    for (const { arrivedAt, text } of this.#pieces ?? []) {
      const blocks = (rest + text).split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        const at = /"at":"([^"]+)"/.exec(block)
        if (at !== null) delays.push(arrivedAt - Date.parse(at[1]!))
      }
    }
    return delays
  }

  [Symbol.dispose](): void {
    this.#socket.end()
  }

  #received(chunk: Buffer): void {
    const arrivedAt = performance.timeOrigin + performance.now()
    const text = chunk.toString('latin1')
    if (!this.#hasBegun) {
      this.#hasBegun = true
      if (text.startsWith(STATUS_OK)) this.#begun.resolve()
      else this.#begun.reject(new Error(`no stream: ${text.slice(0, 200)}`))
    }
    this.#pieces?.push({ arrivedAt, text })
    for (let at = text.indexOf(ENDED); at >= 0; at = text.indexOf(ENDED, at + 1)) this.#endedGraphs++
    this.#lookAtCount()
  }

  #lookAtCount(): void {
    if (this.#endedGraphs >= this.#wanted) this.#isTold()
  }
}

/** Connections that are opened at the same time. More than a server lets wait would be refused. */
const OPENED_TOGETHER = 50

/** `count` streams of the same server, of the `paths` by turns. */
export async function openEventStreams(url: string, paths: readonly string[], count: number): Promise<EventStream[]> {
  const streams: EventStream[] = []
  while (streams.length < count) {
    const some = Array.from({ length: Math.min(OPENED_TOGETHER, count - streams.length) }, (_, i) =>
      EventStream.open(url, paths[(streams.length + i) % paths.length]!),
    )
    streams.push(...(await Promise.all(some)))
  }
  return streams
}
