/**
 * Accepted tasks that wait for room in the ledger.
 *
 * The next to start is the first that fits: first come, first served, but who does not fit yet is passed over. So that a
 * large task is not passed over for ever, it is overtaken at most `MAX_OVERTAKEN` times by tasks that compete with it; from
 * then on those wait until it has started.
 *
 * Who competes with a task that waits:
 *  - held by the capacity of the runtime: whoever came later;
 *  - held by the quota of its tenant: later tasks of that tenant. Others take nothing from it, so they are not counted,
 *    and never have to wait for it. The same holds for tasks that wait behind such a one.
 *
 * Tasks of a tenant without a quota compete with everybody. Tasks alike (the same tenant, if it has a quota, and the same
 * reservation) stand in one row, of which only the first is looked at: with 10,000 waiting tasks a search costs as much as
 * there are different reservations among them, and nothing where no slot is free.
 *
 * A task that can never fit must not be added: the ledger tells (`shortfallOf`), also after a restart with less capacity.
 */
import type { Asking, Ledger } from '../ledger/ledger.ts'
import { Row } from './row.ts'

/**
 * How often a task may be overtaken by tasks that compete with it.
 *
 * Lower: the runtime stands idle more often, as slots are kept free while what runs ends, until the large task fits. At 0
 * nobody overtakes. Higher: a large task waits longer under a steady stream of small ones; with the default of four slots
 * and tasks of a second, 64 of them take a quarter of a minute.
 */
export const MAX_OVERTAKEN = 64

export interface WaitingTask extends Asking {
  readonly task_id: string
}

interface Standing<T> {
  readonly row: Row<T>
  readonly ticket: number
}

export class WaitingQueue<T extends WaitingTask> {
  readonly #ledger: Ledger
  readonly #maxOvertaken: number
  readonly #rows = new Map<string, Row<T>>()
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

  /** Behind all that wait. */
  add(task: T): void {
    const { task_id, tenant, reservation } = task
    if (this.#standing.has(task_id)) throw new Error(`task ${task_id} waits already`)
    const lane = tenant !== undefined && this.#ledger.quotas.has(tenant) ? tenant : undefined
    const key = JSON.stringify([reservation.task_slots, reservation.memory_bytes, reservation.pids, lane])
    let row = this.#rows.get(key)
    if (row === undefined) {
      row = new Row({ tenant: lane, reservation }, lane)
      this.#rows.set(key, row)
    }
    const ticket = this.#nextTicket++
    row.push(task, ticket)
    this.#standing.set(task_id, { row, ticket })
  }

  /** Takes out a task that shall not start any more. Undefined where it does not wait. */
  remove(taskId: string): T | undefined {
    const standing = this.#standing.get(taskId)
    if (standing === undefined) return undefined
    this.#standing.delete(taskId)
    return standing.row.remove(standing.ticket)
  }

  /** Takes out the task that may start now, if there is one. It must be reserved before the next is asked for. */
  takeNext(): T | undefined {
    if (this.#standing.size === 0 || !this.#ledger.hasFreeSlot) return undefined
    const laneBars = this.#findHolds()
    let next: Row<T> | undefined
    let bar = Number.POSITIVE_INFINITY
    for (const row of this.#rows.values()) {
      if (row.hold === null && (next === undefined || row.firstTicket < next.firstTicket)) next = row
      if (row.hold === 'capacity' && this.#isDue(row)) bar = Math.min(bar, row.firstTicket)
    }
    if (next === undefined || next.firstTicket > bar) return undefined
    this.#overtake(next, laneBars)
    const task = next.shift()
    this.#standing.delete(task.task_id)
    return task
  }

  /** Finds what holds the first of each row. The result says from which ticket on a lane waits for one of its own. */
  #findHolds(): LaneBars {
    const laneBars = new Map<string, number>()
    for (const [key, row] of this.#rows) {
      if (row.length === 0) {
        this.#rows.delete(key)
        continue
      }
      row.hold = this.#ledger.holdOn(row.asking)
      if (row.hold === 'quota' && this.#isDue(row)) {
        laneBars.set(row.lane!, Math.min(barOf(laneBars, row.lane), row.firstTicket))
      }
    }
    if (laneBars.size > 0) {
      for (const row of this.#rows.values()) if (row.firstTicket > barOf(laneBars, row.lane)) row.hold = 'quota'
    }
    return laneBars
  }

  /** The first of `next` starts: all that came before it and compete with it are overtaken. */
  #overtake(next: Row<T>, laneBars: LaneBars): void {
    const ticket = next.firstTicket
    for (const row of this.#rows.values()) {
      if (row.lane === next.lane) row.overtake(ticket)
      else if (row.hold !== 'quota') row.overtake(Math.min(ticket, barOf(laneBars, row.lane)))
    }
  }

  /** Whether the first of a row is overtaken no more. */
  #isDue(row: Row<T>): boolean {
    return row.overtaken >= this.#maxOvertaken
  }
}

type LaneBars = ReadonlyMap<string, number>

const barOf = (laneBars: LaneBars, lane: string | undefined): number =>
  (lane === undefined ? undefined : laneBars.get(lane)) ?? Number.POSITIVE_INFINITY
