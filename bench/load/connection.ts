/**
 * One keep-alive connection with a minimal HTTP/1.1 client, one request at a time.
 *
 * `fetch` costs the client more than a small request costs the server. On two cores the bench would measure the
 * generator. Requests are encoded once. Of an answer only the status and the end are parsed.
 */
import type { Socket } from 'bun'

export interface Answer {
  readonly status: number
  readonly body: string
}

/** Milliseconds without an answer after which a server counts as stuck. */
const PATIENCE_MS = 60_000

const HEAD_END = '\r\n\r\n'
/** How a chunked answer ends. JSON on one line contains no line break, so this occurs nowhere else. */
const LAST_CHUNK = '\r\n0\r\n\r\n'

export class Connection implements Disposable {
  #socket!: Socket
  #unsent: Uint8Array | undefined
  #parts: Buffer[] = []
  #size = 0
  /** Bytes of the whole answer; 0 until its head is complete, Infinity where it comes in chunks. */
  #expected = 0
  #bodyStart = 0
  #resolve: ((answer: Answer) => void) | undefined
  #reject: ((reason: Error) => void) | undefined

  /** `url` is `http://host:port`. Throws if no server listens on it. */
  static async open(url: string): Promise<Connection> {
    const { hostname, port } = new URL(url)
    const connection = new Connection()
    connection.#socket = await Bun.connect({
      hostname,
      port: Number(port || 80),
      socket: {
        data: (_socket, chunk) => connection.#received(chunk),
        drain: () => connection.#flush(),
        timeout: () => connection.#failed('no answer in time'),
        close: () => connection.#failed('connection closed'),
        error: (_socket, error) => connection.#failed(error.message),
        connectError: () => {},
      },
    })
    return connection
  }

  /** Sends `request` and resolves with its answer. The previous request must have been answered. */
  send(request: Uint8Array): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#unsent = request
      this.#flush()
    })
  }

  /** As `send`, but resolves with the body, and throws if the status is not `status`. */
  async expect(status: number, request: Uint8Array): Promise<string> {
    const answer = await this.send(request)
    if (answer.status !== status) throw new Error(`status ${answer.status} for ${status}: ${answer.body.slice(0, 200)}`)
    return answer.body
  }

  [Symbol.dispose](): void {
    this.#socket.end()
  }

  #flush(): void {
    if (this.#unsent === undefined) return
    const written = this.#socket.write(this.#unsent)
    if (written < 0) this.#failed('connection closed')
    else this.#unsent = written < this.#unsent.length ? this.#unsent.subarray(written) : undefined
  }

  #received(chunk: Buffer): void {
    this.#parts.push(chunk)
    this.#size += chunk.length
    if (this.#expected === 0 && !this.#readHead()) return
    if (this.#expected === Number.POSITIVE_INFINITY ? !this.#hasLastChunk() : this.#size < this.#expected) return
    const all = this.#whole()
    const isChunked = this.#expected === Number.POSITIVE_INFINITY
    const body = all.toString('utf8', this.#bodyStart)
    const resolve = this.#resolve
    const status = Number(all.toString('latin1', 9, 12))
    this.#parts = []
    this.#size = 0
    this.#expected = 0
    this.#resolve = undefined
    this.#reject = undefined
    resolve?.({ status, body: isChunked ? body.replace(/(?:^|\r\n)[0-9a-f]+\r\n/gi, '').trimEnd() : body })
  }

  /** False while the head is incomplete. */
  #readHead(): boolean {
    const seen = this.#whole()
    const end = seen.indexOf(HEAD_END)
    if (end < 0) return false
    const head = seen.toString('latin1', 0, end)
    this.#bodyStart = end + HEAD_END.length
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)
    if (length !== null) this.#expected = this.#bodyStart + Number(length[1])
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.#expected = Number.POSITIVE_INFINITY
    else this.#expected = this.#bodyStart
    return true
  }

  #hasLastChunk(): boolean {
    const last = this.#parts.at(-1)!.length >= LAST_CHUNK.length ? this.#parts.at(-1)! : this.#whole()
    return last.toString('latin1', last.length - LAST_CHUNK.length) === LAST_CHUNK
  }

  /** What has arrived, in one piece. */
  #whole(): Buffer {
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts)]
    return this.#parts[0]!
  }

  #failed(why: string): void {
    this.#reject?.(new Error(`no answer from the server: ${why}`))
    this.#reject = undefined
  }
}

/** `count` connections to the same server. */
export const openConnections = (url: string, count: number): Promise<Connection[]> =>
  Promise.all(Array.from({ length: count }, () => Connection.open(url)))

/** Rejects if `work` takes longer than `PATIENCE_MS`. */
export async function withPatience<T>(what: string, work: Promise<T>): Promise<T> {
  let timer: Timer | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${PATIENCE_MS} ms`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
