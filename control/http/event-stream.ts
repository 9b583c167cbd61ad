/** The body of a stream of server-sent events. */
import { eachByTurns, WRITES_PER_TURN } from '../../shared/process/steps.ts'
import type { EventSink } from '../operations/watch-request.ts'
import { eventsText, KEEP_ALIVE_TEXT, OPEN_TEXT, positionText } from './event-text.ts'

/** Maximum bytes buffered for a client, besides the buffers of the kernel. */
export const STREAM_BUFFER_BYTES = 256 * 1024

const encoder = new TextEncoder()

/** Sends a comment to all streams from time to time. */
export class KeepAlive {
  readonly #streams = new Set<EventStream>()
  readonly #intervalMs: number
  #timer: Timer | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  add(stream: EventStream): void {
    this.#streams.add(stream)
    this.#timer ??= setInterval(
      () => void eachByTurns([...this.#streams], WRITES_PER_TURN, (each) => each.keepAlive()),
      this.#intervalMs,
    )
  }

  delete(stream: EventStream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** The body of an event stream. */
export class EventStream implements EventSink {
  readonly body: ReadableStream<Uint8Array>
  readonly #keepAlive: KeepAlive
  readonly #slowClientMs: number
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #whenRead: (() => void)[] = []
  #hasEnded = false
  /** Called when the client has closed the connection. */
  onClosed: () => void = () => {}

  constructor(keepAlive: KeepAlive, slowClientMs: number) {
    this.#keepAlive = keepAlive
    this.#slowClientMs = slowClientMs
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
          controller.enqueue(OPEN_TEXT)
        },
        pull: () => this.#read(),
        cancel: () => {
          this.#finish()
          this.onClosed()
        },
      },
      { highWaterMark: STREAM_BUFFER_BYTES, size: (chunk) => chunk?.byteLength ?? 0 },
    )
  }

  begin(seq: number): void {
    this.#write(positionText(seq))
  }

  send: EventSink['send'] = (events, previous) => this.#write(eventsText(events, previous))

  sendText(text: string): void {
    this.#write(encoder.encode(text))
  }

  keepAlive(): void {
    if (!this.isFull) this.#write(KEEP_ALIVE_TEXT)
  }

  #write(bytes: Uint8Array): void {
    if (!this.#hasEnded) this.#controller.enqueue(bytes)
  }

  get isFull(): boolean {
    return (this.#controller.desiredSize ?? 0) < 0
  }

  #read(): void {
    for (const go of this.#whenRead.splice(0)) go()
  }

  async drained(): Promise<boolean> {
    const end = performance.now() + this.#slowClientMs
    while (this.isFull && !this.#hasEnded) {
      const left = end - performance.now()
      if (left <= 0) return false
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, left)
        this.#whenRead.push(() => {
          clearTimeout(late)
          resolve()
        })
      })
    }
    return true
  }

  end(): void {
    if (this.#hasEnded) return
    this.#finish()
    this.#controller.close()
  }

  #finish(): void {
    this.#hasEnded = true
    this.#keepAlive.delete(this)
    this.#read()
  }
}
