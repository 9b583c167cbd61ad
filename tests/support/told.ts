/**
 * Records the answers that clients of control received, and checks them later: acknowledged tasks exist, and states
 * that were seen remain.
 */
import { expect } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'

/** A control service, or several that act as one. */
export interface Asked {
  fetch(path: string, init?: RequestInit): Promise<Response>
  list(): Promise<TaskRecord[]>
}

export class Told {
  /** Acknowledged and, as far as we were told, not deleted. */
  readonly #present = new Set<string>()
  /** To be deleted: that was asked for. */
  readonly #unwanted = new Set<string>()
  readonly #deleted = new Set<string>()
  readonly #cancelled = new Set<string>()
  readonly #ends = new Map<string, TaskRecord>()
  readonly #attempts = new Map<string, number>()
  /** Names of graphs that were answered 503. */
  readonly #refused = new Set<string>()

  accepted(ids: readonly string[]): void {
    for (const id of ids) this.#present.add(id)
  }

  refused(graph: string): void {
    this.#refused.add(graph)
  }

  async look(control: Asked, id: string, waitMs: number): Promise<void> {
    const response = await control.fetch(`/tasks/${id}?wait_ms=${waitMs}`)
    if (response.status === 200) this.saw((await response.json()) as TaskRecord)
    else await response.body?.cancel()
  }

  async cancel(control: Asked, id: string): Promise<void> {
    const response = await control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })
    const { tasks } = (await response.json()) as { tasks?: { status: string }[] }
    const status = response.status === 202 ? tasks?.[0]?.status : undefined
    if (status === 'cancelled' || status === 'cancelling') this.#cancelled.add(id)
  }

  async delete(control: Asked, id: string): Promise<void> {
    // From here on we do not know until we are told.
    this.#present.delete(id)
    this.#unwanted.add(id)
    const response = await control.fetch(`/tasks/${id}`, { method: 'DELETE' })
    if (response.status === 204) this.#deleted.add(id)
    await response.body?.cancel()
  }

  /** Its record is gone and nobody is promised that it ends: after a restart of control nobody follows it. */
  isLeftAlone(id: string): boolean {
    return this.#deleted.has(id) && !this.#cancelled.has(id)
  }

  /** The same, or it may be so: whether it was deleted is not known. */
  mayBeLeftAlone(id: string): boolean {
    return this.#unwanted.has(id) && !this.#cancelled.has(id)
  }

  /** Whether a client has asked for its deletion, whatever the answer was. */
  wasUnwanted(id: string): boolean {
    return this.#unwanted.has(id)
  }

  /** For people. */
  about(id: string): string {
    const told = {
      present: this.#present,
      unwanted: this.#unwanted,
      deleted: this.#deleted,
      cancelled: this.#cancelled,
    }
    const what = Object.entries(told).flatMap(([word, ids]) => (ids.has(id) ? [word] : []))
    return JSON.stringify({ told: what, seen: this.#ends.get(id)?.status, attempt: this.#attempts.get(id) })
  }

  get endsSeen(): number {
    return this.#ends.size
  }

  saw(record: TaskRecord): void {
    const { id, status, attempt = 0 } = record
    const before = this.#ends.get(id)
    if (before !== undefined) expect(record, `${id} after its end was seen`).toEqual(before)
    expect(attempt, `attempt of ${id}`).toBeGreaterThanOrEqual(this.#attempts.get(id) ?? 0)
    this.#attempts.set(id, attempt)
    if (!isTerminal(status)) return
    this.#ends.set(id, record)
    if (this.#cancelled.has(id)) expect(`${id}: ${status}`).toBe(`${id}: cancelled`)
  }

  async check(control: Asked): Promise<TaskRecord[]> {
    const records = await control.list()
    const found = new Set(records.map(({ id }) => id))
    const missing = [...this.#present].filter((id) => !found.has(id))
    expect(missing, 'acknowledged and not deleted, but missing').toEqual([])
    expect(
      [...this.#deleted].filter((id) => found.has(id)),
      'deleted, but back',
    ).toEqual([])
    expect(
      [...found].filter((id) => this.#refused.has(id.replace(/\.\d+$/, ''))),
      'answered 503, but stored',
    ).toEqual([])
    for (const record of records) this.saw(record)
    return records
  }
}
