/** Streams of server-sent events: of the service, of a graph, of a task. */
import type { AnyElysia } from 'elysia'
import { badRequest } from '../../shared/errors.ts'
import { IDLE_TIMEOUT_SECONDS } from '../../shared/http-service.ts'
import { anyText, choice, described, other } from '../../shared/openapi/route.ts'
import { eachByTurns, WRITES_PER_TURN } from '../../shared/steps.ts'
import type { OperationParts } from '../operations/parts.ts'
import type { EventSink } from '../operations/watch.ts'
import { type WatchAddress, watchSubject } from '../operations/watch-subject.ts'
import { eventsText, KEEP_ALIVE_TEXT, OPEN_TEXT, positionText } from './event-text.ts'
import type { StreamLimits } from './stream-limits.ts'
import { TASK_PLACES } from './task-places.ts'

/** Maximum bytes buffered for a client, besides the buffers of the kernel. */
export const STREAM_BUFFER_BYTES = 256 * 1024

const section = 'Events'

const after = anyText('Continues after the event with this number; 0 begins with the oldest that is kept.')
const until = choice(
  ['ended'],
  'ended closes the stream after the event that says that the graph, or the task, has ended.',
)
const headers = { 'Last-Event-ID': 'The id of the last event that was received. Goes before after.' }
const answers = { 200: other('text/event-stream', 'The events, until the client closes the connection.') }
const errors = { 400: 'The number to continue after is invalid.', 503: 'Too many streams are open.' }

export function addEventRoutes(app: AnyElysia, parts: OperationParts, limits: StreamLimits): void {
  const keepAlive = new KeepAlive(limits.keepAliveMs)
  const open = async (
    request: Request,
    query: { after?: string; until?: string },
    address?: WatchAddress,
  ): Promise<Response> => {
    const [after, untilEnded] = [placeOf(request, query.after), isUntilEnded(query.until)]
    const subject = address === undefined ? {} : await watchSubject(parts, address, after)
    const asked = { subject, after, untilEnded }
    if (request.method === 'HEAD') return new Response(null, { headers: HEADERS })
    app.server?.timeout(request, IDLE_TIMEOUT_SECONDS)
    const stream = new EventStream(keepAlive, limits.slowClientMs)
    const watch = parts.eventStreams.open(asked, stream)
    keepAlive.add(stream) // not before: a refused stream would stay
    stream.onClosed = () => watch.end()
    return new Response(stream.body, { headers: HEADERS })
  }
  app
    .get(
      '/events',
      ({ query, request }) => open(request, query),
      described({
        section,
        summary: 'Watch the service',
        query: { after },
        ...{ headers, answers, errors },
      }),
    )
    .get(
      '/graphs/:id/events',
      ({ params, query, request }) => open(request, query, { graphId: params.id }),
      described({
        section,
        summary: 'Watch a graph',
        description:
          'The events of the graph and of its tasks. The stream ends when the graph is removed. A client that resumes after that gets what is kept of its past.',
        params: { id: 'Id of the graph.' },
        query: { after, until },
        ...{ headers, answers, errors: { ...errors, 404: 'There is no such graph, and no later event of it.' } },
      }),
    )
  for (const { path, noun, params, errors: unknown, addressIn } of TASK_PLACES) {
    app.get(
      `${path}/events`,
      ({ params, query, request }) => open(request, query, addressIn(params)),
      described({
        section,
        summary: `Watch ${noun}`,
        description: 'The events of the task. The stream ends when the task or its graph is removed.',
        params,
        query: { after, until },
        ...{ headers, answers, errors: { ...errors, ...unknown } },
      }),
    )
  }
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no', // nginx would hold events back
}

/** Throws 400. */
function placeOf(request: Request, after: string | undefined): number | undefined {
  const lastId = request.headers.get('last-event-id')
  if (lastId !== null && lastId !== '') return numberOf('Last-Event-ID', lastId)
  return after === undefined ? undefined : numberOf('after', after)
}

function numberOf(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw badRequest(`invalid ${name} ${JSON.stringify(text)}: expected the id of an event, or 0`)
}

function isUntilEnded(text: string | undefined): boolean {
  if (text === undefined || text === 'ended') return text === 'ended'
  throw badRequest(`invalid until ${JSON.stringify(text)}: expected ended`)
}

/** Sends a comment to all streams from time to time. */
class KeepAlive {
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
class EventStream implements EventSink {
  readonly body: ReadableStream<Uint8Array>
  readonly #keepAlive: KeepAlive
  readonly #slowClientMs: number
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #whenRead: (() => void) | undefined
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
    this.#whenRead?.()
    this.#whenRead = undefined
  }

  async drained(): Promise<boolean> {
    const end = performance.now() + this.#slowClientMs
    while (this.isFull && !this.#hasEnded) {
      const left = end - performance.now()
      if (left <= 0) return false
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, left)
        this.#whenRead = () => {
          clearTimeout(late)
          resolve()
        }
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
