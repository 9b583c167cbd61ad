/** The body of a request: read whole or in chunks, with limits of bytes and time, and known to be whole. */
import type { AnyElysia } from 'elysia'
import { ServiceError } from '../contract/errors.ts'
import { runCooperatively } from '../process/steps.ts'
import { joinedBytes } from '../streams/joined-bytes.ts'
import { IDLE_TIMEOUT_SECONDS, WRITE_TIMEOUT_SECONDS } from './time-limits.ts'

/**
 * Reads the whole body of a request of `app`. Throws 413 once it has more than `maxBytes`. Then starts the time limit for
 * sending the answer.
 *
 * For routes with `parse: 'none'`: what Elysia does before a custom parser (a stream of the body that nobody reads, a field
 * added to the context and deleted again, a getter for the server) costs 3 µs a request.
 */
export async function readBody(app: AnyElysia, request: Request, maxBytes: number): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > maxBytes) throw bodyTooLarge(maxBytes)
  const isSmall = declared !== null && Number(declared) < LARGE_BODY_BYTES
  const body = await (isSmall ? request.bytes() : bodyInChunks(request, maxBytes)).catch(notArrived)
  app.server?.timeout(request, WRITE_TIMEOUT_SECONDS)
  return body
}

/**
 * The body of a request of `app` in chunks, for a route that keeps none of it in memory. `isAlive` starts the time limit for
 * the next chunk: the server itself does not see that a body goes on.
 */
export function bodyChunks(app: AnyElysia, request: Request) {
  const isAlive = () => app.server?.timeout(request, IDLE_TIMEOUT_SECONDS)
  const chunks = async function* (): AsyncGenerator<Uint8Array, void, void> {
    isAlive()
    try {
      if (request.body !== null) yield* request.body
    } catch (error) {
      notArrived(error)
    }
  }
  return { chunks: chunks(), isAlive }
}

/** An error while reading a body, other than our own refusal, means that the connection was closed. */
function notArrived(error: unknown): never {
  if (error instanceof ServiceError) throw error
  throw new ServiceError(CALLER_GONE, 'the caller closed the connection before the body had arrived', { cause: error })
}

/** For work that nobody waits for any more. */
export const callerLeftError = () => new ServiceError(CALLER_GONE, 'the caller closed the connection')

/** The status of a request whose caller has disconnected. Only the log shows it. */
export const CALLER_GONE = 499

/** Bodies from this size on are read in chunks and joined in steps. In one step, 60 MiB would block the event loop for 30 ms. */
const LARGE_BODY_BYTES = 4 * 1024 * 1024

/** Reads a body that is large, or of unknown length. */
async function bodyInChunks(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body) {
    size += chunk.byteLength
    if (size > maxBytes) throw bodyTooLarge(maxBytes)
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : runCooperatively(joinedBytes(chunks))
}

export const bodyTooLarge = (maxBytes: number) =>
  new ServiceError(413, `request body is larger than ${maxBytes} bytes (the limit is --max-body-bytes)`)
