/**
 * A server on 127.0.0.1 that tells whoever asks what it got, in all ways that an answer has: so it tries to have the proxy pass on
 * a secret that the proxy has added.
 */
import type { Socket } from 'bun'

export interface EchoServer extends Disposable {
  readonly port: number
}

interface Got {
  text: string
}

export function echoServer(): EchoServer {
  const listener = Bun.listen<Got>({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: {
      open: (socket) => {
        socket.data = { text: '' }
      },
      data: (socket, bytes) => answer(socket, bytes.toString('latin1')),
    },
  })
  return { port: listener.port, [Symbol.dispose]: () => listener.stop(true) }
}

function answer(socket: Socket<Got>, text: string): void {
  socket.data.text += text
  const [head] = socket.data.text.split('\r\n\r\n') as [string]
  if (head.length === socket.data.text.length) return
  const [line, ...headers] = head.split('\r\n') as [string, ...string[]]
  const values = headers.map((header) => header.replace(/^.*?: ?/, ''))
  const told = [line, ...headers.map(inLowerCase), ...values.map((value) => btoa(value))]
  const [path] = /\/[a-z-]+(?=\?)/.exec(line) ?? ['']
  socket.end((ANSWERS[path] ?? plain)(told))
}

/** A header with its name in lower case: the proxy keeps those of the task as they are spelled. */
const inLowerCase = (header: string) => header.replace(/^[^:]*/, (name) => name.toLowerCase())

type Answer = (told: readonly string[]) => string

const inHead = (told: readonly string[]) => told.map((text, i) => `X-Told-${i}: ${text}\r\n`).join('')
const plain: Answer = (told) => {
  const body = told.join('\n')
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
}

/** By the path of the request. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  '/head': (told) =>
    `HTTP/1.1 302 ${told.join(' ')}\r\nLocation: /?${told.join()}\r\n${inHead(told)}Content-Length: 0\r\n\r\n`,
  '/chunks': (told) => {
    const chunks = [...told.join('\n')].map((byte) => `1;${told.join()}\r\n${byte}\r\n`).join('')
    return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n${inHead(told)}\r\n`
  },
  '/early': (told) => `HTTP/1.1 103 Early Hints\r\n${inHead(told)}\r\n${plain(told)}`,
  '/open-end': (told) => `HTTP/1.0 200 OK\r\n\r\n${told.join('\n')}`,
  '/upgrade': (told) =>
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n${inHead(told)}\r\n${told.join()}`,
  '/malformed': (told) => `HTTP/1.1 200 OK\r\n${told.join(' ').replaceAll(':', ' ')}\r\n\r\n`,
  '/more': (told) => `${plain(told)}${plain(told)}${told.join()}`,
}
