/**
 * Tells with the failure of a crash test what its cause may be read from: when the service was killed, and of the graphs that
 * are wrong the log lines, the records and the events.
 */
import { expect } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { Control } from './control.ts'
import type { LogLine } from './service.ts'

interface Life {
  readonly from: string
  to?: string
  readonly log: readonly LogLine[]
}

export class CrashStory {
  readonly #lives: Life[] = []

  /** To be called with each service, right after its start. */
  follow(control: Control): void {
    const life: Life = { from: new Date().toISOString(), log: control.log }
    this.#lives.push(life)
    void control.process.exited.then(() => {
      life.to = new Date().toISOString()
    })
  }

  /** When services listened, and when they had ended. */
  get lives(): string {
    return this.#lives.map(({ from, to = 'now' }) => `service from ${from} to ${to}`).join('\n')
  }

  /** Fails if there are faults of graphs, by their ids. `control` has their records. */
  async noFaults(control: Control, faults: ReadonlyMap<string, readonly string[]>): Promise<void> {
    const wrong = [...faults.keys()].filter((id) => faults.get(id)!.length > 0)
    const told: string[] = []
    for (const id of wrong) told.push(...(await this.#about(control, id)))
    const all = wrong.flatMap((id) => faults.get(id)!.map((fault) => `${id}: ${fault}`))
    expect(all, `${this.lives}\n${told.join('\n')}`).toEqual([])
  }

  async #about(control: Control, graphId: string): Promise<string[]> {
    const lines = this.#lives.flatMap(({ log }) => log.filter(({ graph_id }) => graph_id === graphId))
    const records = (await (await control.fetch(`/graphs/${graphId}/tasks`)).json()) as TaskRecord[]
    const events = await (await control.fetch(`/graphs/${graphId}/events?after=0&until=ended`)).text()
    const data = events.split('\n').filter((line) => line.startsWith('data: '))
    return [`graph ${graphId}:`, ...[...lines, ...records].map((each) => JSON.stringify(each)), ...data]
  }
}
