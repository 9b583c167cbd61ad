/**
 * One HTTP request and its answer.
 *
 * The request is written anew from what was understood of it, and is the only one on its connection: what the client sends
 * after its body goes nowhere. The answer is passed on as it is, but for its `Connection` header. After a WebSocket was
 * agreed on, bytes are passed both ways. What answers a request with secrets is read, masked and written anew, too.
 */
import { setImmediate } from 'node:timers/promises'
import type { MaskTexts } from '../../shared/streams/masker.ts'
import type { Endpoint } from './endpoint.ts'
import { gatherAnswerHead } from './gather.ts'
import { maskedAnswerHead, passMaskedBody } from './masked-answer.ts'
import { type Meter, relay, relayAnswer } from './relay.ts'
import { CHUNK_END, ChunkedBody, chunkStart, LAST_CHUNK, MAX_PIECES } from './wire/chunked-body.ts'
import { answerBodyOf } from './wire/http-answer.ts'
import { answerHead, forwardedHead } from './wire/http-forward.ts'
import {
  type BodyLength,
  bodyLengthOf,
  type Header,
  type PlainTarget,
  type RequestHead,
  websocketKey,
} from './wire/http-request.ts'
import { Malformed } from './wire/malformed.ts'

const SWITCHING_PROTOCOLS = 101

export interface Sides {
  readonly client: Endpoint
  readonly server: Endpoint
  readonly sent: Meter
  readonly received: Meter
}

export interface Exchanged {
  /** Whether the client got an answer, or a part of it. */
  readonly isAnswered: boolean
  /** What the client, or the server, sent against the rules of HTTP. */
  readonly clientFault?: string
  readonly serverFault?: string
}

export interface ExchangedRequest {
  readonly head: RequestHead
  readonly target: PlainTarget
  /** Headers in place of those of the same names. */
  readonly added?: readonly Header[]
  /** Whether the server is asked over TLS. Default: false. */
  readonly isTls?: boolean
  /** What is masked in the answer. */
  readonly masks?: MaskTexts | undefined
}

/** Sends the head and the body after it, and passes the answer back. Throws `Malformed` before anything is sent. */
export async function exchange(request: ExchangedRequest, sides: Sides): Promise<Exchanged> {
  const { client, server, sent } = sides
  const { head, target, added, isTls, masks } = request
  const text = Buffer.from(forwardedHead(head, target, added, isTls), 'latin1')
  const length = bodyLengthOf(head)
  const key = websocketKey(head)
  // A client that leaves ends its request, even while nobody reads from it.
  void client.closed.then(() => server.destroy())
  if (!sent(text.length) || !(await server.write(text))) return { isAnswered: false }
  const body = faultOf(sendBody(length, sides)).then((fault) => {
    if (fault !== undefined) server.destroy()
    return fault
  })
  let isAnswered = false
  const onAnswer = () => {
    isAnswered = true
  }
  const serverFault = await faultOf(
    masks === undefined ? answer(key, sides, body, onAnswer) : maskedAnswer(head.method, masks, sides, onAnswer),
  )
  server.destroy() // ends a body that nobody waits for any more
  const clientFault = await body
  return {
    isAnswered,
    ...(clientFault !== undefined && { clientFault }),
    ...(serverFault !== undefined && { serverFault }),
  }
}

async function faultOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    if (error instanceof Malformed) return error.message
    throw error
  }
}

/** Passes the answer back, if there is one. Calls `onAnswer` before the client gets any of it. Throws `Malformed`. */
async function answer(
  key: string | undefined,
  sides: Sides,
  body: Promise<unknown>,
  onAnswer: () => void,
): Promise<void> {
  const { client, server, sent, received } = sides
  for (;;) {
    const text = await gatherAnswerHead(server)
    if (text === undefined) return
    const head = answerHead(text, key)
    onAnswer()
    if (!received(text.length) || !(await client.writeText(head.text))) return
    if (head.status === SWITCHING_PROTOCOLS) {
      await body
      await Promise.all([relay(client, server, sent), relayAnswer(server, client, received)])
      return
    }
    if (head.status >= 200) break
  }
  await relayAnswer(server, client, received)
}

/** The same for a request with secrets, which has become nothing else. */
async function maskedAnswer(method: string, masks: MaskTexts, sides: Sides, onAnswer: () => void): Promise<void> {
  const { client, server, received } = sides
  for (;;) {
    const text = await gatherAnswerHead(server)
    if (text === undefined) return
    const head = answerHead(text, undefined)
    const body = answerBodyOf(text, head.status, method)
    onAnswer()
    const masked = maskedAnswerHead(head, masks)
    if (!received(masked.length) || !(await client.writeText(masked))) return
    if (head.status >= 200) return await passMaskedBody(body, sides, masks)
  }
}

/** Passes the body of a request on, and nothing behind it. */
async function sendBody(length: BodyLength, sides: Sides): Promise<void> {
  if (length === 'chunked') await sendChunks(sides)
  else await sendBytes(length, sides)
}

async function sendBytes(length: number, { client, server, sent }: Sides): Promise<void> {
  for (let left = length; left > 0; ) {
    const bytes = await client.read()
    if (bytes === undefined) return server.destroy()
    const part = bytes.subarray(0, left)
    left -= part.length
    client.unread(bytes.subarray(part.length))
    if (!sent(part.length) || !(await server.write(part))) return
  }
}

async function sendChunks({ client, server, sent }: Sides): Promise<void> {
  const body = new ChunkedBody()
  while (!body.isDone) {
    const bytes = await client.read()
    if (bytes === undefined) return server.destroy()
    const pieces = body.read(bytes)
    client.unread(bytes.subarray(body.taken))
    if (pieces.length === 0) continue
    const parts = pieces.flatMap((piece) => [Buffer.from(chunkStart(piece.length)), piece, Buffer.from(CHUNK_END)])
    const chunks = Buffer.concat(parts)
    if (!sent(chunks.length) || !(await server.write(chunks))) return
    if (pieces.length === MAX_PIECES) await setImmediate()
  }
  const last = Buffer.from(LAST_CHUNK)
  if (sent(last.length)) await server.write(last)
}
