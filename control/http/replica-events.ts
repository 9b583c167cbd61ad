/** The events of one replica, as another replica reads them for its client. */
import { ServiceError } from '../../shared/contract/errors.ts'
import { EventSplitter, type ServerSentEvent } from '../../shared/streams/server-sent-events.ts'
import type { AskedReplica, OtherReplicas } from '../log/keeper.ts'
import type { NumberBlocks } from '../log/number-blocks.ts'
import { MISSING_REPLICAS_HEADER } from '../operations/joined-pages.ts'
import type { PartOfStream } from '../operations/watch-request.ts'
import { EventStream } from './event-stream.ts'
import { liveText } from './event-text.ts'

/** Header of the answer: the blocks of numbers of the replica that answers. */
const BLOCKS_HEADER = 'x-taskmill-blocks'

/** Bytes of one event: the largest have labels, or an entry of progress. */
const MAX_EVENT_BYTES = 16 * 1024 * 1024

/** Minimum milliseconds without a byte until the stream of another replica counts as broken. */
const SILENCE_MS = 60_000

/** Keep-alive comments that may fail to come before that. */
const COMMENTS_PER_SILENCE = 4

export interface ReplicaEventsRequest {
  readonly others: OtherReplicas
  readonly replica: AskedReplica
  readonly keepAliveMs: number
  readonly signal: AbortSignal
  readonly traceId: string
}

export interface ReplicaEvents {
  readonly blocks: readonly number[]
  /** Whether the replica is adopting graphs, and lacks some of their events. */
  readonly isAdopting: boolean
  /** Ends, or throws, when the stream breaks. */
  readonly events: AsyncGenerator<ServerSentEvent>
}

/** Asks another replica for its events. Rejects with 503. */
export async function readReplicaEvents(
  { others, replica, keepAliveMs, signal, traceId }: ReplicaEventsRequest,
  after: string | undefined,
): Promise<ReplicaEvents> {
  const silence = new AbortController()
  const path = after === undefined ? '/replicas/events' : `/replicas/events?after=${after}`
  const headers = new Headers({ accept: 'text/event-stream', 'x-trace-id': traceId })
  const either = AbortSignal.any([signal, silence.signal])
  const answer = await others.ask(replica, { method: 'GET', path, headers, signal: either })
  const blocks = answer.headers.get(BLOCKS_HEADER)
  if (!answer.ok || answer.body === null || blocks === null) {
    void answer.body?.cancel().catch(() => {})
    throw new ServiceError(503, `replica ${replica.id} answers ${answer.status} instead of its events`)
  }
  const silenceMs = Math.max(SILENCE_MS, keepAliveMs * COMMENTS_PER_SILENCE)
  return {
    blocks: blocks.split(',').map(Number),
    isAdopting: answer.headers.has(MISSING_REPLICAS_HEADER),
    events: eventsIn(answer.body, () => silence.abort(), silenceMs),
  }
}

async function* eventsIn(
  body: ReadableStream<Uint8Array>,
  onSilence: () => void,
  silenceMs: number,
): AsyncGenerator<ServerSentEvent> {
  const splitter = new EventSplitter(MAX_EVENT_BYTES)
  const reader = body.getReader()
  try {
    for (;;) {
      const late = setTimeout(onSilence, silenceMs)
      const { value, done } = await reader.read().finally(() => clearTimeout(late))
      if (done) return
      yield* splitter.events(value)
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}

/** The headers of such an answer. */
export const partHeaders = ({ own }: NumberBlocks, adopting: readonly number[]): Record<string, string> => ({
  [BLOCKS_HEADER]: own.join(','),
  ...(adopting.length > 0 && { [MISSING_REPLICAS_HEADER]: adopting.join(',') }),
})

/** Each replica sends the removals with its own numbers. The joining replica sends those with numbers of dead replicas. */
export const ownPart = (blocks: () => NumberBlocks): PartOfStream => ({
  tellsRemovalsOf: (block) => blocks().own.includes(block),
})

/** The body of such an answer. */
export class PartStream extends EventStream {
  override begin(seq: number): void {
    this.sendText(liveText(seq))
  }
}
