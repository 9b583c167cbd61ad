/**
 * Why tasks wait, for those who watch events.
 *
 * Reasons are not on disk. Where an event has the newest state of its task, the reason is computed when the event is
 * sent. Other services do not tell when their reasons change: while somebody watches tasks that they carry out, they are
 * asked once a second, and each change is told as `task_waiting`.
 */

import type { ServiceEvent } from '../../shared/contract/events.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import type { Waiting } from '../../shared/contract/waiting.ts'
import { isoTime } from '../../shared/iso-time.ts'
import type { Task } from '../graph/graph.ts'
import { waitingOf } from '../graph/waiting.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { TaskStore } from '../store/tasks.ts'
import { isElsewhere, type WaitingParts, waitingNow } from './waiting.ts'

/** Changes that are told at a time. The others are told after the next look. */
const MAX_TOLD = 500

export interface WaitingEventsParts extends WaitingParts {
  readonly store: TaskStore
  readonly scheduler: Pick<Scheduler, 'slotUse' | 'executing'>
}

/** What another service said of a task; without `waiting`, that the task executes. */
export interface Reason {
  readonly task: Task
  readonly waiting: Waiting | undefined
}

type TaskChanged = Extract<ServiceEvent, { readonly event: 'task_changed' }>

export class WaitingEvents {
  readonly #parts: WaitingEventsParts
  /** What other services said last. */
  readonly #reasons = new Map<Task, Reason>()
  /** Many streams get the same events one after the other, so the last results are kept. */
  #explained: { readonly of: readonly ServiceEvent[]; readonly events: readonly ServiceEvent[] } = {
    of: [],
    events: [],
  }
  #told: { readonly of: readonly Reason[]; readonly seq: number; readonly events: readonly ServiceEvent[] } = {
    of: [],
    seq: 0,
    events: [],
  }

  constructor(parts: WaitingEventsParts) {
    this.#parts = parts
  }

  /** Why `task` waits, as far as it is known without asking anybody. */
  reasonOf(task: Task): Waiting | undefined {
    const reason = isElsewhere(task) ? this.#reasons.get(task)?.waiting : undefined
    return reason ?? waitingOf(task, this.#parts.scheduler.slotUse, Date.now())
  }

  /** What other services said last of running tasks. */
  get reasons(): Iterable<Reason> {
    return this.#reasons.values()
  }

  /** The events, with why their tasks wait. */
  explained(events: readonly ServiceEvent[]): readonly ServiceEvent[] {
    if (events === this.#explained.of) return this.#explained.events
    const isAny = events.some((event) => this.#mayWait(event))
    this.#explained = { of: events, events: isAny ? events.map((event) => this.#explainedOne(event)) : events }
    return this.#explained.events
  }

  /** Most events say that a task executes, or has ended. */
  #mayWait(event: ServiceEvent): event is TaskChanged {
    if (event.event !== 'task_changed' || isTerminal(event.status)) return false
    return event.status === 'pending' || event.run_status === 'accepted' || this.#reasons.size > 0
  }

  #explainedOne(event: ServiceEvent): ServiceEvent {
    if (!this.#mayWait(event)) return event
    const { store } = this.#parts
    const graph = store.graph(event.graph_id)
    const task = graph && store.taskIn(graph, event.task_id)
    if (task?.seq !== event.seq) return event // it is in another state by now
    const waiting = this.reasonOf(task)
    return waiting === undefined ? event : { ...event, waiting }
  }

  /** Asks other services about their tasks that `isWatched`. Returns what has changed since the last call. */
  async look(isWatched: (task: Task) => boolean): Promise<Reason[]> {
    const tasks = new Set([...this.#parts.scheduler.executing].filter((task) => isElsewhere(task) && isWatched(task)))
    for (const task of this.#reasons.keys()) if (!tasks.has(task)) this.#reasons.delete(task)
    if (tasks.size === 0) return []
    const waitingOfTask = await waitingNow(this.#parts, [...tasks])
    const changed: Reason[] = []
    for (const task of tasks) {
      if (changed.length === MAX_TOLD) break
      if (!isElsewhere(task)) continue
      const waiting = waitingOfTask(task)
      const before = this.#reasons.get(task)
      const reason = { task, waiting }
      if (before?.waiting?.detail !== waiting?.detail) changed.push(reason)
      this.#reasons.set(task, reason)
    }
    return changed
  }

  /** What streams are told of `reasons`. `seq` is the number of the event before. */
  eventsOf(reasons: readonly Reason[], seq: number): readonly ServiceEvent[] {
    if (reasons !== this.#told.of || seq !== this.#told.seq)
      this.#told = { of: reasons, seq, events: reasons.map((reason) => waitingEvent(reason, seq)) }
    return this.#told.events
  }
}

const waitingEvent = ({ task: { id, graph }, waiting }: Reason, seq: number): ServiceEvent => ({
  ...({ event: 'task_waiting', seq, at: isoTime(Date.now()), graph_id: graph.id, task_id: id } as const),
  ...(waiting !== undefined && { waiting }),
  ...(graph.options.scope !== undefined && { scope: graph.options.scope }),
})
