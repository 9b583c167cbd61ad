/**
 * One HTTP request on a connection of its own, byte by byte as a test wants it, and what came back. `fetch` refuses or
 * repairs most hostile requests.
 */
import { connect } from 'node:net'

export interface WireRequest {
  readonly method: string
  /** As in the request line: a path with a query. */
  readonly target: string
  /** Besides Host and Content-Length, unless they are among them. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array | undefined
}

export interface WireAnswer {
  /** 0: the connection was closed without an answer. */
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** Whether the answer came to its end. False for a stream that was left. */
  readonly isWhole: boolean
}

export interface WireLimits {
  /** Milliseconds until the headers of the answer, and the end of a body that is no stream. */
  readonly answerMs: number
  /** Milliseconds for which a stream is read. Streams are answers with events, and logs that are followed. */
  readonly streamMs: number
  /** Whether the request follows a log. Its answer begins with the first output. */
  readonly mayFollow: boolean
  /** Milliseconds for which a log that is followed may be silent before it is left. */
  readonly silenceMs: number
}

/** Throws if no answer comes in time. */
export function exchange(url: string, request: WireRequest, limits: WireLimits): Promise<WireAnswer | 'silent'> {
  const { hostname, port, host } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<WireAnswer | 'silent'>()
  const socket = connect({ host: hostname, port: Number(port) })
  const chunks: Buffer[] = []
  let head: Head | undefined
  let isOver = false
  let streamTimer: ReturnType<typeof setTimeout> | undefined

  const finish = (act: () => void) => {
    if (isOver) return
    isOver = true
    clearTimeout(answerTimer)
    clearTimeout(streamTimer)
    clearTimeout(silenceTimer)
    socket.destroy()
    act()
  }
  const answer = (isWhole: boolean) =>
    finish(() => {
      const bytes = Buffer.concat(chunks)
      if (head === undefined) return resolve({ status: 0, headers: new Map(), body: '', isWhole })
      resolve({ status: head.status, headers: head.headers, body: bodyOf(head, bytes), isWhole })
    })
  function leaveIfSilent(): void {
    if (head === undefined) finish(() => resolve('silent'))
  }
  const answerTimer = setTimeout(
    () => finish(() => reject(new Error(`no ${head === undefined ? 'answer' : 'end of it'} in ${limits.answerMs} ms`))),
    limits.answerMs,
  )
  const silenceTimer = limits.mayFollow ? setTimeout(leaveIfSilent, limits.silenceMs) : undefined
  socket.on('connect', () => {
    socket.write(headOf(request, host))
    if (request.body !== undefined) socket.write(request.body)
  })
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    head ??= readHead(chunks.length === 1 ? chunk : Buffer.concat(chunks))
    if (head === undefined || streamTimer !== undefined) return
    if (request.method === 'HEAD') return answer(true)
    if (hasWholeBody(head, chunks)) return answer(true)
    const isStream = limits.mayFollow || head.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream) streamTimer = setTimeout(() => answer(false), limits.streamMs)
  })
  socket.on('close', () => answer(true))
  // A service that refuses a body closes the connection while we still send.
  socket.on('error', () => answer(true))
  return promise
}

function headOf({ method, target, headers, body }: WireRequest, host: string): Buffer {
  const given = new Set(headers.map(([name]) => name.toLowerCase()))
  // Without Connection: close, because a kernel short of memory for TCP resets a connection that the service has closed
  // while it still sends.
  const own: [string, string][] = [['Host', host]]
  if (body !== undefined && !given.has('transfer-encoding')) own.push(['Content-Length', String(body.byteLength)])
  const lines = [...own.filter(([name]) => !given.has(name.toLowerCase())), ...headers]
  return Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join('')}\r\n`)
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly length: number
}

function readHead(bytes: Buffer): Head | undefined {
  const [start, end] = finalHead(bytes)
  if (end < 0) return
  const [statusLine = '', ...lines] = bytes.subarray(start, end).toString('latin1').split('\r\n')
  const headers = new Map(lines.map((line) => [line.split(':', 1)[0]!.toLowerCase(), line.replace(/^[^:]*: */, '')]))
  return { status: Number(statusLine.split(' ')[1]), headers, length: end + 4 }
}

/** Where the head of the answer is, behind any `100 Continue`. */
function finalHead(bytes: Buffer): [start: number, end: number] {
  let start = 0
  while (bytes.subarray(start, start + 10).toString('latin1') === 'HTTP/1.1 1') {
    const end = bytes.indexOf('\r\n\r\n', start)
    if (end < 0) return [start, end]
    start = end + 4
  }
  return [start, bytes.indexOf('\r\n\r\n', start)]
}

function hasWholeBody({ status, headers, length }: Head, chunks: readonly Buffer[]): boolean {
  if (status === 204 || status === 304) return true
  const declared = headers.get('content-length')
  if (declared !== undefined) return chunks.reduce((sum, chunk) => sum + chunk.byteLength, -length) >= Number(declared)
  return headers.get('transfer-encoding') === 'chunked' && Buffer.concat(chunks).subarray(-5).toString() === '0\r\n\r\n'
}

function bodyOf({ headers, length }: Head, bytes: Buffer): string {
  const rest = bytes.subarray(length)
  if (headers.get('transfer-encoding') !== 'chunked') return rest.toString()
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const end = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.subarray(at, Math.max(at, end)).toString('latin1'), 16)
    if (end < 0 || !(size > 0)) return Buffer.concat(parts).toString()
    parts.push(rest.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
}

/** Longest argument that is shown whole. */
const MAX_SHOWN_BYTES = 4_000

/** A line for a shell that sends the same request. */
export function curlLine(url: string, { method, target, headers, body }: WireRequest): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
  const parts = ['curl', '-sS', '-i', '--path-as-is', '-g', '-X', quoted(method)]
  for (const [name, value] of headers) parts.push('-H', quoted(value === '' ? `${name};` : `${name}: ${value}`))
  const url_ = quoted(`${url}${target}`)
  if (body === undefined) return [...parts, url_].join(' ')
  const isPlain = Buffer.from(Buffer.from(body).toString()).equals(Buffer.from(body)) && !body.includes(0)
  if (isPlain && body.byteLength <= MAX_SHOWN_BYTES) {
    return [...parts, '--data-binary', quoted(Buffer.from(body).toString()), url_].join(' ')
  }
  const base64 = Buffer.from(body).toString('base64')
  const shown = base64.length > MAX_SHOWN_BYTES ? `${base64.slice(0, 200)}... (${body.byteLength} bytes)` : base64
  return `echo ${quoted(shown)} | base64 -d | ${[...parts, '--data-binary', '@-', url_].join(' ')}`
}
