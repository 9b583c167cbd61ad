/**
 * Passes the answer to a request with secrets back, with each byte of a secret as `*`. Lengths stay, so what the server says of
 * its body holds. Chunks are made anew, because a secret may be cut in two by the end of one.
 */
import { setImmediate } from 'node:timers/promises'
import { Masker, type MaskTexts } from '../../shared/streams/masker.ts'
import type { Endpoint } from './endpoint.ts'
import type { Meter } from './relay.ts'
import { CHUNK_END, ChunkedBody, chunkStart, LAST_CHUNK, MAX_PIECES } from './wire/chunked-body.ts'
import { type AnswerBody, maskedHead } from './wire/http-answer.ts'
import type { AnswerHead } from './wire/http-forward.ts'

export interface AnswerSides {
  readonly client: Endpoint
  readonly server: Endpoint
  readonly received: Meter
}

/** The head of an answer with masked secrets. */
export const maskedAnswerHead = ({ text }: AnswerHead, masks: MaskTexts): string =>
  maskedHead(text, (line) => {
    const masker = new Masker(masks, true)
    return Buffer.concat([masker.push(Buffer.from(line, 'latin1')), masker.end()]).toString('latin1')
  })

/** Passes the body on, and ends what the client gets. Throws `Malformed`. */
export async function passMaskedBody(body: AnswerBody, sides: AnswerSides, masks: MaskTexts): Promise<void> {
  const { client, server } = sides
  const masker = new Masker(masks, true)
  const isWhole = await (body === 'chunked' ? passChunks(masker, sides) : passBytes(body, masker, sides))
  if (isWhole && !server.isBroken) client.end()
  else client.destroy()
}

/** Whether all of the body was passed on, as far as its length is known. */
async function passBytes(length: number, masker: Masker, sides: AnswerSides): Promise<boolean> {
  for (let left = length; left > 0; ) {
    const bytes = await sides.server.read()
    if (bytes === undefined) return length === Number.POSITIVE_INFINITY && (await passOn(masker.end(), sides))
    const part = bytes.subarray(0, left)
    left -= part.length
    if (!(await passOn(masker.push(part), sides))) return false
  }
  return await passOn(masker.end(), sides)
}

async function passChunks(masker: Masker, sides: AnswerSides): Promise<boolean> {
  const body = new ChunkedBody()
  while (!body.isDone) {
    const bytes = await sides.server.read()
    if (bytes === undefined) return false
    const pieces = body.read(bytes)
    sides.server.unread(bytes.subarray(body.taken))
    if (!(await passOn(chunk(Buffer.concat(pieces.map((piece) => masker.push(piece)))), sides))) return false
    if (pieces.length === MAX_PIECES) await setImmediate()
  }
  return await passOn(Buffer.concat([chunk(masker.end()), Buffer.from(LAST_CHUNK)]), sides)
}

const chunk = (bytes: Uint8Array): Uint8Array =>
  bytes.length === 0 ? bytes : Buffer.concat([Buffer.from(chunkStart(bytes.length)), bytes, Buffer.from(CHUNK_END)])

/** A server sends nothing more while the client takes nothing. */
async function passOn(bytes: Uint8Array, { client, server, received }: AnswerSides): Promise<boolean> {
  if (bytes.length === 0) return true
  if (!received(bytes.length)) return false
  const writing = client.write(bytes)
  if (client.isBlocked) server.pause()
  return await writing
}
