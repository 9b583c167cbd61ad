/**
 * The events of the service, of a graph or of a task, over lost connections and restarts of the service: each stream is
 * resumed after the last event. A client that was too slow (`lagging`) resumes as well.
 */
import { isTerminal } from '../shared/contract/task-status.ts'
import { eventStream } from '../shared/streams/event-stream.ts'
import type { Connection } from './connection.ts'
import type { ServiceEvent } from './contract.ts'
import { TaskmillError } from './errors.ts'
import { Outage } from './outage.ts'

/** An event, with the id that a stream resumes after. */
export type TaskmillEvent = Exclude<ServiceEvent, { readonly event: 'lagging' }> & { readonly id: string }

export interface EventOptions {
  /**
   * The id of the event to continue after; `0` begins with the oldest event that the service keeps, `now` with the next one.
   * Default: `0` for a graph or a task, `now` for the service.
   */
  readonly after?: string | number | undefined
  /** Aborts the iteration, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

export interface SubjectEventOptions extends EventOptions {
  /** `ended` (default): the iteration ends after the last event of the graph or task. `removed`: when it is removed. */
  readonly until?: 'ended' | 'removed' | undefined
}

export interface Subject {
  readonly kind: 'service' | 'graph' | 'task'
  /** The path of the graph or task; empty for the service. */
  readonly path: string
}

export async function* readEvents(
  connection: Connection,
  { kind, path }: Subject,
  { after = kind === 'service' ? 'now' : '0', until = 'ended', signal }: SubjectEventOptions,
): AsyncGenerator<TaskmillEvent, void> {
  const outage = new Outage(connection, signal)
  const untilEnded = kind !== 'service' && until === 'ended'
  const left = new AbortController()
  const reading = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal])
  let lastEventId = after === 'now' ? undefined : String(after)
  let wasOver = false
  const onPosition = (id: string) => {
    lastEventId = id
    outage.over()
  }
  try {
    for (;;) {
      let isEmpty = true
      try {
        const request = { path: `${path}/events${untilEnded ? '?until=ended' : ''}`, lastEventId, onPosition }
        for await (const { kind: event, data, id } of eventStream(connection, { ...request, signal: reading })) {
          outage.over()
          isEmpty = false
          if (id !== undefined) lastEventId = id
          if (event === 'lagging') continue
          const told = { ...data, event, id: id ?? '' } as TaskmillEvent
          yield told
          if (isLast(told, kind, untilEnded)) return
        }
        signal?.throwIfAborted()
        // An end without an event is that of the service, or the graph had ended before: then nothing follows.
        const isOver = untilEnded && isEmpty && (await hasEnded(connection, path, reading))
        if (isOver && wasOver) return
        wasOver = isOver
        if (isOver) continue
        throw new TaskmillError('the service closed the stream of events', { code: 'unreachable' })
      } catch (error) {
        signal?.throwIfAborted()
        await outage.lost(error)
      }
    }
  } finally {
    left.abort()
  }
}

/** Whether no event can follow. */
function isLast(event: TaskmillEvent, kind: Subject['kind'], untilEnded: boolean): boolean {
  if (kind === 'service') return false
  if (event.event === 'graph_removed' || (kind === 'task' && event.event === 'task_deleted')) return true
  if (!untilEnded) return false
  if (event.event === 'reset') return kind === 'graph' ? hasGraphEnded(event.graph) : hasTaskEnded(event.task)
  return kind === 'graph' ? event.event === 'graph_ended' : event.event === 'task_changed' && hasTaskEnded(event)
}

const hasGraphEnded = (graph: { readonly state: string } | undefined) =>
  graph !== undefined && graph.state !== 'running'

const hasTaskEnded = (task: { readonly status: string } | undefined) => task !== undefined && isTerminal(task.status)

async function hasEnded(connection: Connection, path: string, signal: AbortSignal): Promise<boolean> {
  const { body } = await connection.call({ method: 'GET', path, signal, isRepeatable: true, retryMs: 0 })
  const { state, status } = body as { readonly state?: string; readonly status?: string }
  return state === undefined ? hasTaskEnded({ status: String(status) }) : hasGraphEnded({ state })
}
