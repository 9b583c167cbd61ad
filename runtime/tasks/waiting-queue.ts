/**
 * Accepted tasks that wait for room in the ledger.
 *
 * The first task that fits starts next: of those with the highest priority the one that came first. A task that does not fit
 * yet is passed over. So that a large task is not passed over for ever, tasks that compete with it overtake it at most
 * `MAX_OVERTAKEN` times. After that they wait until it has started.
 *
 * Which tasks compete with a waiting task:
 *  - held by the capacity of the runtime: all that stand behind it;
 *  - held because no user is free for its sandbox: none, as the others are no sandboxes;
 *  - held by the quota of its tenant: later tasks of that tenant. Others take nothing from it, so they are not counted,
 *    and never have to wait for it. The same holds for tasks that wait behind such a task.
 *
 * Tasks of a tenant without a quota compete with all tasks. Tasks that are alike (the same tenant, if it has a quota,
 * the same reservation and priority) stand in one line, and only the first of them is looked at. So with 10,000 waiting
 * tasks a search costs as much as there are different ones among them, and nothing while no slot is free.
 *
 * A task that can never fit must not be added: the ledger tells (`shortfallOf`), also after a restart with less
 * capacity.
 */
import type { WaitingFor } from '../../shared/contract/runtime.ts'
import type { Asking, Ledger } from '../ledger/ledger.ts'
import { AlikeTasks } from './alike-tasks.ts'

/**
 * Maximum number of times that competing tasks may overtake a task.
 *
 * Lower: the runtime is idle more often, as slots stay free until the large task fits. At 0 no task overtakes. Higher:
 * a large task waits longer under a steady stream of small ones. With the default of four slots and tasks of a second,
 * 64 of them take a quarter of a minute.
 */
export const MAX_OVERTAKEN = 64

export interface WaitingTask extends Asking {
  readonly task_id: string
  /** Default 0. */
  readonly priority?: number
}

interface Standing<T> {
  readonly alike: AlikeTasks<T>
  readonly ticket: number
}

/** What a step of priority is worth in tickets: more than are drawn while a service runs. */
const TICKETS_OF_PRIORITY = 2 ** 44

export class WaitingQueue<T extends WaitingTask> {
  readonly #ledger: Ledger
  readonly #maxOvertaken: number
  readonly #kinds = new Map<string, AlikeTasks<T>>()
  readonly #standing = new Map<string, Standing<T>>()
  #nextTicket = 0

  constructor(ledger: Ledger, maxOvertaken: number = MAX_OVERTAKEN) {
    this.#ledger = ledger
    this.#maxOvertaken = maxOvertaken
  }

  /** Tasks that wait. */
  get length(): number {
    return this.#standing.size
  }

  has(taskId: string): boolean {
    return this.#standing.has(taskId)
  }

  /** The cause that keeps a task from starting now; undefined if it does not wait. Computed on request. */
  waitsFor(taskId: string): WaitingFor | undefined {
    const standing = this.#standing.get(taskId)
    if (standing === undefined) return undefined
    return this.#ledger.shortageOf(standing.alike.asking) ?? { resource: 'turn' }
  }

  /** Behind all that wait with the same priority. */
  add(task: T): void {
    const { task_id, tenant, reservation, isSandboxed = false, priority = 0 } = task
    if (this.#standing.has(task_id)) throw new Error(`task ${task_id} waits already`)
    const lane = tenant !== undefined && this.#ledger.quotas.has(tenant) ? tenant : undefined
    const { task_slots, memory_bytes, pids } = reservation
    const key = JSON.stringify([task_slots, memory_bytes, pids, isSandboxed, lane, priority])
    let alike = this.#kinds.get(key)
    if (alike === undefined) {
      alike = new AlikeTasks({ tenant: lane, reservation, isSandboxed }, lane)
      this.#kinds.set(key, alike)
    }
    const ticket = this.#nextTicket++ - priority * TICKETS_OF_PRIORITY
    alike.push(task, ticket)
    this.#standing.set(task_id, { alike, ticket })
  }

  /** Takes out a task that must not start any more. Undefined where it does not wait. */
  remove(taskId: string): T | undefined {
    const standing = this.#standing.get(taskId)
    if (standing === undefined) return undefined
    this.#standing.delete(taskId)
    return standing.alike.remove(standing.ticket)
  }

  /** Takes out the task that may start now, if there is one. It must be reserved before the next is asked for. */
  takeNext(): T | undefined {
    if (this.#standing.size === 0 || !this.#ledger.hasFreeSlot) return undefined
    const laneBars = this.#findHolds()
    let next: AlikeTasks<T> | undefined
    let bar = Number.POSITIVE_INFINITY
    for (const alike of this.#kinds.values()) {
      if (alike.hold === null && (next === undefined || alike.firstTicket < next.firstTicket)) next = alike
      if (alike.hold === 'capacity' && this.#isDue(alike)) bar = Math.min(bar, alike.firstTicket)
    }
    if (next === undefined || next.firstTicket > bar) return undefined
    this.#overtake(next, laneBars)
    const task = next.shift()
    this.#standing.delete(task.task_id)
    return task
  }

  /** Finds what holds the first of each kind. Returns the ticket from which on a lane waits for a task of its own. */
  #findHolds(): LaneBars {
    const laneBars = new Map<string, number>()
    for (const [key, alike] of this.#kinds) {
      if (alike.length === 0) {
        this.#kinds.delete(key)
        continue
      }
      alike.hold = this.#ledger.holdOn(alike.asking)
      if (alike.hold === 'quota' && this.#isDue(alike)) {
        laneBars.set(alike.lane!, Math.min(barOf(laneBars, alike.lane), alike.firstTicket))
      }
    }
    if (laneBars.size > 0) {
      for (const alike of this.#kinds.values())
        if (alike.firstTicket > barOf(laneBars, alike.lane)) alike.hold = 'quota'
    }
    return laneBars
  }

  /** The first of `next` starts: all tasks that came before it and compete with it are overtaken. */
  #overtake(next: AlikeTasks<T>, laneBars: LaneBars): void {
    const ticket = next.firstTicket
    for (const alike of this.#kinds.values()) {
      if (alike.lane === next.lane) alike.overtake(ticket)
      else if (alike.hold !== 'quota') alike.overtake(Math.min(ticket, barOf(laneBars, alike.lane)))
    }
  }

  /** Whether the first task must not be overtaken any more. */
  #isDue(alike: AlikeTasks<T>): boolean {
    return alike.overtaken >= this.#maxOvertaken
  }
}

type LaneBars = ReadonlyMap<string, number>

const barOf = (laneBars: LaneBars, lane: string | undefined): number =>
  (lane === undefined ? undefined : laneBars.get(lane)) ?? Number.POSITIVE_INFINITY
