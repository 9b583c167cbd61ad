/** Goal: the client reads a followed log in both of its forms, and does not wait for a service that is silent for good. */
import { expect, test } from 'bun:test'
import { controlService } from '../../../adapter/client.ts'
import { ServiceClient } from '../../../shared/http/client.ts'
import { type LogStreamRequest, logStream } from '../../../shared/streams/log-stream.ts'
import { SilenceLimit } from '../../../shared/streams/silence-limit.ts'

async function readFrom(answer: (request: Request) => Response, isFollowed = true) {
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  const client = new ServiceClient(controlService, { url: server.url.href, token: undefined })
  const told: unknown[] = []
  const request: LogStreamRequest = {
    ...{ path: '/tasks/a/logs', isFollowed, signal: new AbortController().signal },
    onOpen: () => told.push('open'),
    onBegin: (begin) => told.push(begin),
  }
  const pieces: Uint8Array[] = []
  for await (const piece of logStream(client, request)) pieces.push(piece)
  return { told, bytes: [...Buffer.concat(pieces)] }
}

test('events: bytes of any kind, and what they begin with', async () => {
  const text =
    ': open\n\n: keep-alive\n\nevent: begin\ndata: {"status":"running","attempt":2,"offset":7,"truncated":true}\n\n' +
    'event: bytes\ndata: AP8=\n\n: keep-alive\n\nevent: bytes\ndata: Cg==\n\n'
  const { told, bytes } = await readFrom(({ headers }) => {
    expect(headers.get('accept')).toStartWith('text/event-stream')
    return new Response(text, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
  })
  expect(told).toEqual(['open', { attempt: 2, offset: 7, truncated: true }])
  expect(bytes).toEqual([0, 255, 10])
})

test('plain bytes, as older services answer, and as a log is read that is not followed', async () => {
  const headers = {
    'content-type': 'text/plain',
    'x-task-attempt': '3',
    'x-log-offset': '5',
    'x-log-truncated': 'false',
  }
  const plain = new Uint8Array([1, 255])
  for (const isFollowed of [true, false]) {
    const { told, bytes } = await readFrom((request) => {
      expect(request.headers.get('accept')?.includes('text/event-stream') ?? false).toBe(isFollowed)
      return new Response(plain, { headers })
    }, isFollowed)
    expect(told).toEqual(['open', { attempt: 3, offset: 5, truncated: false }])
    expect(bytes).toEqual([1, 255])
  }
})

test('a stream that is silent for too long counts as lost', async () => {
  const silence = new SilenceLimit(5)
  const lost = Promise.withResolvers<unknown>()
  silence.signal.addEventListener('abort', () => lost.resolve(silence.signal.reason))
  silence.begin()
  expect(await lost.promise).toEqual(new Error('nothing arrived for 5 ms'))
})
