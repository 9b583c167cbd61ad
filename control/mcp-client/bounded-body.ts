/**
 * Limits the body of an answer: each message, which is an event of a stream or the whole body, has at most
 * `MAX_MESSAGE_BYTES`. The observer sees each message before the reader of the body does.
 */
import { LineTooLong } from '../../shared/streams/line-splitter.ts'
import { EventSplitter } from '../../shared/streams/server-sent-events.ts'
import { MAX_MESSAGE_BYTES } from './limits.ts'

/** `end` is called once, at any end of the body. */
export type BodyForm =
  | {
      readonly kind: 'stream'
      readonly onData: (data: string) => void
      readonly end: (hasEventIds: boolean) => void
    }
  | {
      readonly kind: 'whole'
      /** Gets the whole body; undefined if it is incomplete. */
      readonly end: (text: string | undefined) => void
    }

/** Wraps `body` in a stream that fails if the body, or an event in it, is too large. */
export function boundedBody(body: ReadableStream<Uint8Array>, form: BodyForm): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const { add, finish } = form.kind === 'stream' ? eventsOf(form) : wholeOf(form)
  let isEnded = false
  const end = (isWhole: boolean) => {
    if (isEnded) return
    isEnded = true
    finish(isWhole)
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          end(true)
          controller.close()
          return
        }
        add(value)
        controller.enqueue(value)
      } catch (error) {
        void reader.cancel().catch(() => {})
        controller.error(error)
        end(false)
      }
    },
    cancel(reason) {
      end(false)
      return reader.cancel(reason)
    },
  })
}

interface Watch {
  /** Throws if the message is too large. */
  readonly add: (chunk: Uint8Array) => void
  readonly finish: (isWhole: boolean) => void
}

const tooLarge = () => new Error(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`)

function eventsOf({ onData, end }: BodyForm & { kind: 'stream' }): Watch {
  const events = new EventSplitter(MAX_MESSAGE_BYTES)
  return {
    add(chunk) {
      try {
        for (const data of events.push(chunk)) onData(data)
      } catch (error) {
        throw error instanceof LineTooLong ? tooLarge() : error
      }
    },
    finish: () => end(events.hasIds),
  }
}

function wholeOf({ end }: BodyForm & { kind: 'whole' }): Watch {
  const chunks: Uint8Array[] = []
  let bytes = 0
  return {
    add(chunk) {
      bytes += chunk.length
      if (bytes > MAX_MESSAGE_BYTES) throw tooLarge()
      chunks.push(chunk.slice()) // a copy, because the reader may reuse the memory
    },
    finish: (isWhole) => end(isWhole ? Buffer.concat(chunks, bytes).toString('utf8') : undefined),
  }
}
