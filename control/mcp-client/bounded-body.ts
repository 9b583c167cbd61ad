/**
 * The body of an answer, none of whose messages is larger than `MAX_MESSAGE_BYTES`: an event of a stream, or all of it.
 * Whoever hands it on sees each message before its reader does.
 */
import { LineTooLong } from '../../shared/line-splitter.ts'
import { EventSplitter } from '../../shared/server-sent-events.ts'
import { MAX_MESSAGE_BYTES } from './limits.ts'

/** `end` is called once, whatever the end is. */
export type BodyForm =
  | {
      readonly kind: 'stream'
      readonly onData: (data: string) => void
      readonly end: (hasEventIds: boolean) => void
    }
  | {
      readonly kind: 'whole'
      /** Gets the body; undefined when it has not come whole. */
      readonly end: (text: string | undefined) => void
    }

/** `body`, which fails when it, or an event of it, is too large. */
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
  /** Throws when it is too large. */
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
      chunks.push(chunk.slice()) // a copy: its reader may use its memory for something else
    },
    finish: (isWhole) => end(isWhole ? Buffer.concat(chunks, bytes).toString('utf8') : undefined),
  }
}
