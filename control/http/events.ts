/** Streams of server-sent events: of the service, of a graph, of a task. */
import type { AnyElysia } from 'elysia'
import { badRequest } from '../../shared/contract/errors.ts'
import { endingWithToken } from '../../shared/http/callers.ts'
import { anyText, choice, described, other } from '../../shared/http/openapi/route.ts'
import { traceIdOf } from '../../shared/http/service.ts'
import { IDLE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import type { KeptEvents } from '../log/keeper.ts'
import { type Positions, positionsIn } from '../log/positions.ts'
import { Membership } from '../operations/membership.ts'
import type { OperationParts } from '../operations/parts.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import type { WatchAddress } from '../operations/watch-request.ts'
import { EventStream, KeepAlive } from './event-stream.ts'
import { JoinedEvents } from './joined-events.ts'
import type { StreamLimits } from './stream-limits.ts'
import { graphErrors, TASK_PLACES } from './task-places.ts'

const section = 'Events'

const after = anyText('Continues after the event with this id; 0 begins with the oldest that is kept.')
const until = choice(
  ['ended'],
  'ended closes the stream after the event that says that the graph, or the task, has ended.',
)
const headers = { 'Last-Event-ID': 'The id of the last event that was received. Goes before after.' }
const answers = { 200: other('text/event-stream', 'The events, until the client closes the connection.') }
const errors = { 400: 'The id to continue after is invalid.', 503: 'Too many streams are open.' }

export function addEventRoutes(app: AnyElysia, parts: OperationParts, partsFor: PartsFor, limits: StreamLimits): void {
  const keepAlive = new KeepAlive(limits.keepAliveMs)
  const { keeper } = parts
  const membership = new Membership(keeper)
  const open = async (
    request: Request,
    query: { after?: string; until?: string },
    address?: WatchAddress,
  ): Promise<Response> => {
    const { eventStreams } = partsFor(request)
    const [place, untilEnded] = [placeAfter(keeper.numbers, request, query.after), isUntilEnded(query.until)]
    const [[block, seq] = [], ...more] = typeof place === 'object' ? place : []
    const after = more.length === 0 && typeof place === 'object' ? (seq ?? block) : place // one graph has one order
    const subject = address === undefined ? {} : await eventStreams.subjectOf(address, after)
    const asked = { subject, after, untilEnded }
    if (request.method === 'HEAD') return new Response(null, { headers: EVENT_STREAM_HEADERS })
    app.server?.timeout(request, IDLE_TIMEOUT_SECONDS)
    const stream = new EventStream(keepAlive, limits.slowClientMs)
    const watch = eventStreams.open(asked, stream)
    keepAlive.add(stream) // not before: a refused stream would stay
    stream.onClosed = () => watch.end()
    return endingWithToken(request, new Response(stream.body, { headers: EVENT_STREAM_HEADERS }))
  }
  /** The events of all replicas. */
  const openJoined = async (request: Request, given: string | undefined, traceId: string): Promise<Response> => {
    const place = placeAfter(keeper.numbers, request, given)
    const after = typeof place === 'number' ? 0 : place
    if (request.method === 'HEAD') return new Response(null, { headers: EVENT_STREAM_HEADERS })
    const joined = await membership.now()
    const parts = partsFor(request)
    const onEnd = parts.eventStreams.enter('clients')
    app.server?.timeout(request, IDLE_TIMEOUT_SECONDS)
    const client = new EventStream(keepAlive, limits.slowClientMs)
    keepAlive.add(client)
    const { keepAliveMs } = limits
    const events = new JoinedEvents({ parts, membership, keepAliveMs, client, after, traceId, onEnd })
    client.onClosed = () => events.end()
    void events.run(joined)
    return endingWithToken(request, new Response(client.body, { headers: EVENT_STREAM_HEADERS }))
  }
  app
    .get(
      '/events',
      ({ query, request, set }) =>
        keeper.replica === undefined ? open(request, query) : openJoined(request, query.after, traceIdOf(set)),
      described({
        section,
        right: 'read',
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
        right: 'read',
        summary: 'Watch a graph',
        description:
          'The events of the graph and of its tasks. The stream ends when the graph is removed. A client that resumes after that gets what is kept of its past.',
        params: { id: 'Id of the graph.' },
        query: { after, until },
        ...{
          headers,
          answers,
          errors: { ...graphErrors('There is no such graph, and no later event of it.'), ...errors },
        },
      }),
    )
  for (const { path, noun, params, errors: unknown, addressIn } of TASK_PLACES) {
    app.get(
      `${path}/events`,
      ({ params, query, request }) => open(request, query, addressIn(params)),
      described({
        section,
        right: 'read',
        summary: `Watch ${noun}`,
        description: 'The events of the task. The stream ends when the task or its graph is removed.',
        params,
        query: { after, until },
        ...{ headers, answers, errors: { ...unknown, ...errors } },
      }),
    )
  }
}

export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no', // nginx would hold events back
}

/** What a stream continues after: with a database, also positions in the events of several replicas. Throws 400. */
export function placeAfter(
  numbers: Pick<KeptEvents['numbers'], 'blocks'>,
  request: Request,
  after: string | undefined,
): number | Positions | undefined {
  const lastId = request.headers.get('last-event-id') ?? ''
  const [name, text] = lastId === '' ? ['after', after] : ['Last-Event-ID', lastId]
  if (text === undefined) return undefined
  const positions = numbers.blocks === undefined ? undefined : positionsIn(text)
  if (positions !== undefined) return positions
  if (/^\d{1,16}$/.test(text)) return Number(text)
  throw badRequest(`invalid ${name} ${JSON.stringify(text)}: expected the id of an event, or 0`)
}

function isUntilEnded(text: string | undefined): boolean {
  if (text === undefined || text === 'ended') return text === 'ended'
  throw badRequest(`invalid until ${JSON.stringify(text)}: expected ended`)
}
