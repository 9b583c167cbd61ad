/**
 * Adds the reasons why tasks wait to event streams.
 *
 * Reasons are not on disk. If an event has the newest state of its task, the reason is computed when the event is sent.
 * The runtime service does not report when its reasons change. So while a client watches runtime tasks, control asks
 * the runtime service once a second, and sends each change as `task_waiting`.
 */

import type { ServiceEvent } from '../../shared/contract/events.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import type { Waiting } from '../../shared/contract/waiting.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Task } from '../task/graph.ts'
import { waitingOf } from '../task/waiting.ts'
import type { Ground } from './ground.ts'
import { mayBeDelegated, waitingNow } from './waiting.ts'

/** Maximum changes per query. The next query reports the rest. */
const MAX_TOLD = 500

/** Why a delegated task waits. Without `waiting`, the task executes. */
export interface Reason {
  readonly task: Task
  /** The attempt that waits. */
  readonly handleId: string | undefined
  readonly waiting: Waiting | undefined
}

type TaskChanged = Extract<ServiceEvent, { readonly event: 'task_changed' }>

export class WaitingEvents {
  readonly #parts: Ground
  /** The reasons from the last query, by task. */
  readonly #reasons = new Map<Task, Reason>()
  /** The last results. Many streams ask for the same events one after the other. */
  #explained: { readonly of: readonly ServiceEvent[]; readonly events: readonly ServiceEvent[] } = {
    of: [],
    events: [],
  }
  #told: { readonly of: readonly Reason[]; readonly seq: number; readonly events: readonly ServiceEvent[] } = {
    of: [],
    seq: 0,
    events: [],
  }

  constructor(parts: Ground) {
    this.#parts = parts
  }

  /** Why `task` waits, without asking another service. */
  reasonOf(task: Task): Waiting | undefined {
    const reason = this.#reasons.get(task)?.waiting
    return reason ?? waitingOf(task, this.#parts.scheduler.slotUse, Date.now())
  }

  /** The reasons from the last query. */
  get reasons(): Iterable<Reason> {
    return this.#reasons.values()
  }

  /** Adds `waiting` to events. */
  explained(events: readonly ServiceEvent[]): readonly ServiceEvent[] {
    if (events === this.#explained.of) return this.#explained.events
    const isAny = events.some((event) => this.#mayWait(event))
    this.#explained = { of: events, events: isAny ? events.map((event) => this.#explainedOne(event)) : events }
    return this.#explained.events
  }

  /** Whether the task of the event may wait. Excludes most events without a look at their task. */
  #mayWait(event: ServiceEvent): event is TaskChanged {
    if (event.event !== 'task_changed' || isTerminal(event.status)) return false
    return event.status === 'pending' || event.run_status === 'accepted' || this.#reasons.size > 0
  }

  #explainedOne(event: ServiceEvent): ServiceEvent {
    if (!this.#mayWait(event)) return event
    const { store } = this.#parts
    const graph = store.graph(event.graph_id)
    const task = graph && store.taskIn(graph, event.task_id)
    if (task?.seq !== event.seq) return event // the task has changed since the event
    const waiting = this.reasonOf(task)
    return waiting === undefined ? event : { ...event, waiting }
  }

  /**
   * Asks other services about their watched tasks. While no change can be written, also explains the other watched tasks
   * that execute. Returns the changes since the last call.
   */
  async look(isWatched: (task: Task) => boolean): Promise<Reason[]> {
    const { scheduler, executors, keeper } = this.#parts
    const hasReason = (task: Task) => this.#reasons.get(task)?.waiting !== undefined
    const mayWait = (task: Task) => keeper.fault !== undefined || hasReason(task) || mayBeDelegated(executors, task)
    const tasks = new Set([...scheduler.executing].filter((task) => mayWait(task) && isWatched(task)))
    for (const task of this.#reasons.keys()) if (!tasks.has(task)) this.#reasons.delete(task)
    if (tasks.size === 0) return []
    const waitingOfTask = await waitingNow(this.#parts, [...tasks], (task) => this.#lastReasonOf(task))
    const changed: Reason[] = []
    for (const task of tasks) {
      if (changed.length === MAX_TOLD) break
      if (!mayWait(task)) continue
      const waiting = waitingOfTask(task)
      const before = this.#reasons.get(task)
      const reason = { task, handleId: task.rare.handle?.id, waiting }
      if (before?.waiting?.detail !== waiting?.detail) changed.push(reason)
      this.#reasons.set(task, reason)
    }
    return changed
  }

  /** The reason of the same attempt from the last query. */
  #lastReasonOf(task: Task): Waiting | undefined {
    const reason = this.#reasons.get(task)
    return reason?.handleId === task.rare.handle?.id ? reason?.waiting : undefined
  }

  /** The `task_waiting` events for `reasons`. `seq` is the number of the preceding event. */
  eventsOf(reasons: readonly Reason[], seq: number): readonly ServiceEvent[] {
    if (reasons !== this.#told.of || seq !== this.#told.seq)
      this.#told = { of: reasons, seq, events: reasons.map((reason) => waitingEvent(reason, seq)) }
    return this.#told.events
  }
}

const waitingEvent = ({ task: { id, graph }, waiting }: Reason, seq: number): ServiceEvent => ({
  ...({ event: 'task_waiting', seq, at: isoTime(Date.now()), graph_id: graph.id, task_id: id } as const),
  ...(waiting !== undefined && { waiting }),
  ...(graph.isScoped && { scope: 'graph' as const }),
  ...(graph.tenant !== undefined && { tenant: graph.tenant }),
})
