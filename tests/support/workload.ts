/**
 * Clients of a control service, or of several that act as one, with several runtime services; and what must be true once all
 * of it has come to rest, whatever was killed meanwhile.
 *
 * The clients submit random graphs of local and runtime tasks under idempotency keys, look, cancel and delete. Afterwards
 * every acknowledged graph is there and has ended, what a client has seen of an end has not changed, control and the
 * runtime services tell the same about each attempt, no attempt has started twice, and nothing is left behind.
 */
import { expect } from 'bun:test'
import type { TaskSummary } from '../../shared/contract/runtime.ts'
import { hasEnded } from '../../shared/contract/runtime-status.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { disagreements, partsOf } from './agreement.ts'
import { mixedGraph, type PlannedTask } from './mixed-graph.ts'
import type { Random } from './random.ts'
import type { Runtime } from './runtime.ts'
import { type Asked, Told } from './told.ts'
import { until } from './until.ts'

/** Milliseconds in which all must come to rest on a busy machine. */
const REST_MS = 120_000

export interface Site {
  /** Answers in the end, whichever service is away meanwhile. */
  readonly control: Asked
  readonly runtimes: () => readonly Runtime[]
  /** A path for the notes of tasks. */
  file(name: string): string
  /** The lines of such a file. */
  lines(name: string): string[]
  /** Number of attempts that control is still to end in runtime services. */
  orphans(): Promise<number>
  /** Placements that some of the tasks ask for. */
  readonly placements: readonly object[]
}

export class Workload {
  readonly #site: Site
  readonly #random: Random
  readonly #told = new Told()
  readonly #planned = new Map<string, PlannedTask>()
  readonly #graphIds = new Set<string>()
  #clients: Promise<unknown> = Promise.resolve()
  #isOver = false

  constructor(site: Site, random: Random) {
    this.#site = site
    this.#random = random
  }

  start(clients: number): void {
    this.#clients = Promise.all(Array.from({ length: clients }, () => this.#client()))
    this.#clients.catch(() => {}) // whoever waits for them is told
  }

  /** Resolves when the clients have finished what they are at. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#clients
  }

  async #client(): Promise<void> {
    while (!this.#isOver) await this.#useOneGraph()
  }

  async #useOneGraph(): Promise<void> {
    const { control, placements } = this.#site
    const random = this.#random
    const name = `g${this.#graphIds.size}x${random(1_000_000_000)}`
    const notes = { local: this.#site.file('local'), runtime: this.#site.file('runtime-runs') }
    const { tasks, planned } = mixedGraph(random, name, notes)
    for (const plan of planned) this.#planned.set(plan.id, plan)
    const body = JSON.stringify({ tasks: tasks.map((task) => placed(task, placements, random)) })
    const { graph_id, task_ids } = await this.#submit(name, body)
    this.#told.accepted(task_ids)
    if (random(5) === 0) expect(await this.#submit(name, body), `${name}, told again`).toEqual({ graph_id, task_ids })
    const anyId = () => task_ids[random(task_ids.length)]!
    for (let looks = random(3); looks > 0; looks--) await this.#told.look(control, anyId(), random(120))
    const next = random(16)
    // Rather one that runs: whether it is ended shows only where nothing else ends it.
    const id = planned.find(({ end }) => end.kind === 'endless')?.id ?? anyId()
    if (next < 6) await this.#told.cancel(control, id)
    if (next >= 5 && next < 8) await this.#told.delete(control, id)
    await this.#told.look(control, task_ids.at(-1)!, random(250))
  }

  /** Acknowledged, with the answer. The key makes it the same graph however often the request arrives. */
  async #submit(key: string, body: string): Promise<Pick<SubmitResponse, 'graph_id' | 'task_ids'>> {
    const init = { method: 'POST', headers: { 'idempotency-key': key }, body }
    const response = await this.#site.control.fetch('/tasks', init)
    if (response.status !== 202) throw new Error(`${key}: ${response.status} ${await response.text()}`)
    const { graph_id, task_ids } = (await response.json()) as SubmitResponse
    this.#graphIds.add(graph_id)
    return { graph_id, task_ids }
  }

  /** Waits until nothing goes on any more, and looks whether all is as it must be. Then all graphs are deleted. */
  async comeToRest(): Promise<void> {
    const { control } = this.#site
    const ofHere = async () =>
      (await control.list()).filter(({ status }) => !isTerminal(status)).map(({ id, status }) => `${id}: ${status}`)
    await until(ofHere, (going) => going.length === 0, { patienceMs: REST_MS })
    await until(
      () => this.#goingThere(),
      (going) => going.length === 0,
      { patienceMs: REST_MS },
    )
    const here = new Map((await this.#told.check(control)).map((record) => [record.id, record]))
    const lists = await Promise.all(this.#site.runtimes().map((runtime) => runtime.list()))
    const handles = lists.flat().map(({ task_id }) => task_id)
    expect(twice(handles), 'attempts at two runtime services').toEqual([])
    const there = new Map(lists.flat().map((task) => [task.task_id, task]))
    expect(disagreements({ planned: this.#planned, here, there, isPatient: true, mayBeUnplaced: true })).toEqual([])
    this.#checkRuns(there)
    await this.#nothingIsLeft()
    await this.#deleteAll()
  }

  #checkRuns(there: ReadonlyMap<string, TaskSummary>): void {
    const runs = this.#site.lines('runtime-runs').map((mark) => mark.slice(mark.indexOf(':') + 1))
    expect(twice(runs), 'attempts that ran twice').toEqual([])
    // The mark of the service before the name of the attempt differs from replica to replica.
    const local = this.#site.lines('local').map((mark) => mark.slice(mark.indexOf('/') + 1))
    expect(twice(local), 'local attempts that ran twice').toEqual([])
    expect(
      runs.filter((handle) => !there.has(handle) && !this.#told.wasUnwanted(partsOf(handle).id)),
      'ran, but unknown',
    ).toEqual([])
    const ran = new Set(runs)
    const exited = [...there.values()].filter(
      ({ exit_code, status }) => exit_code !== undefined && status !== 'cancelled',
    )
    expect(
      exited.filter(({ task_id }) => !ran.has(task_id)).map(({ task_id }) => task_id),
      'exited, but never ran',
    ).toEqual([])
    expect(ran.size).toBeGreaterThan(0)
    expect(this.#told.endsSeen).toBeGreaterThan(0)
  }

  /**
   * Attempts that have not ended. Nobody follows one whose record was deleted: endless ones are killed here. All others
   * control ends by itself, whoever had promised it.
   */
  async #goingThere(): Promise<string[]> {
    const all = await Promise.all(
      this.#site.runtimes().map(async (runtime) => {
        const going = (await runtime.list()).filter(({ status }) => !hasEnded(status))
        for (const { task_id } of going) {
          const { id } = partsOf(task_id)
          if (this.#planned.get(id)?.end.kind !== 'endless' || !this.#told.mayBeLeftAlone(id)) continue
          await (await runtime.kill(task_id)).text()
        }
        return going.map(({ task_id, status }) => `${task_id} is ${status}, ${this.#told.about(partsOf(task_id).id)}`)
      }),
    )
    return all.flat()
  }

  async #nothingIsLeft(): Promise<void> {
    for (const runtime of this.#site.runtimes()) {
      await until(
        () => runtime.resources(),
        ({ active_reservations, accepted_waiting_tasks }) =>
          active_reservations.length === 0 && accepted_waiting_tasks === 0,
        { patienceMs: REST_MS },
      )
      expect((await runtime.resources()).reserved).toEqual({ task_slots: 0, memory_bytes: 0, pids: 0 })
    }
    await until(
      () => this.#site.orphans(),
      (orphans) => orphans === 0,
      { patienceMs: REST_MS },
    )
  }

  async #deleteAll(): Promise<void> {
    for (const id of this.#graphIds) {
      await until(
        async () => {
          const response = await this.#site.control.fetch(`/graphs/${id}`, { method: 'DELETE' })
          return `${response.status} ${await response.text()}`
        },
        (answer) => answer.startsWith('204') || answer.startsWith('404'),
        { patienceMs: REST_MS },
      )
    }
    expect((await this.#site.control.list()).map(({ id }) => id)).toEqual([])
  }

  /** Whether a client has asked for the deletion of a task. */
  wasUnwanted(id: string): boolean {
    return this.#told.wasUnwanted(id)
  }

  /** How much was done. */
  get counts(): { readonly graphs: number; readonly runs: number } {
    return { graphs: this.#graphIds.size, runs: this.#site.lines('runtime-runs').length }
  }
}

/** The task, sometimes with a placement if it is one of a runtime service. */
function placed(task: object, placements: readonly object[], random: Random): object {
  const { type, params } = task as { type: string; params?: object }
  if (placements.length === 0 || !type.startsWith('runtime.') || random(3) > 0) return task
  return { ...task, params: { ...params, placement: placements[random(placements.length)] } }
}

const twice = (all: readonly string[]): string[] => all.filter((one, i) => all.indexOf(one) !== i)
