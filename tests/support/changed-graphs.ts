/**
 * Clients that pause, resume, retry and patch graphs which run, and what must be true once all have ended, whatever was killed
 * meanwhile: each graph has the tasks that the answers told, in order, each as it must have ended; no id was in two of them at a
 * time, nothing that a pause held has started, and no attempt has run twice.
 */
import { expect } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import type { Random } from './random.ts'
import type { Asked } from './told.ts'
import { until } from './until.ts'

/** Milliseconds in which all must end on a busy machine. */
const REST_MS = 120_000

/** Ids that the graphs fight for. */
const SHARED_IDS = 3

interface ChangedGraph {
  readonly id: string
  readonly name: string
  /** Ids of its tasks, in order, with those that they depend on. */
  readonly tasks: Map<string, readonly string[]>
  revision: number
  /** Acknowledged retries of the task that fails. */
  retries: number
  isPaused: boolean
  /** Tasks that came while it was paused: a pause holds them. */
  held: string[]
}

export class ChangedGraphs {
  readonly #control: Asked
  readonly #log: string
  readonly #lines: () => string[]
  readonly #random: Random
  readonly #graphs: ChangedGraph[] = []
  /** The graphs that have a shared id, as far as they were told and have not asked to give it up. */
  readonly #holders = new Map<string, string>()
  readonly #counts = { patches: 0, refused: 0, retries: 0, pauses: 0 }
  #names = 0
  #clients: Promise<unknown> = Promise.resolve()
  #isOver = false

  /** Tasks write their attempts to the file `log`, of which `lines` returns the lines. */
  constructor(control: Asked, log: string, lines: () => string[], random: Random) {
    this.#control = control
    this.#log = log
    this.#lines = lines
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

  /** How much was done. */
  get counts(): { readonly graphs: number } & Readonly<Record<'patches' | 'refused' | 'retries' | 'pauses', number>> {
    return { graphs: this.#graphs.length, ...this.#counts }
  }

  async #client(): Promise<void> {
    while (!this.#isOver) {
      const graph = await this.#submit()
      const steps = [() => this.#patch(graph), () => this.#pauseOrResume(graph), () => this.#retry(graph)]
      for (let left = 4 + this.#random(8); left > 0; left--) {
        await steps[[0, 0, 0, 1, 2][this.#random(5)]!]!()
        await Bun.sleep(this.#random(60))
      }
      if (graph.isPaused) await this.#pauseOrResume(graph)
      for (const [id, holder] of this.#holders) if (holder === graph.name) this.#holders.delete(id)
      await this.#approve(graph)
    }
  }

  /** A graph that stays open until its gate is approved, with a task that fails each time. */
  async #submit(): Promise<ChangedGraph> {
    const name = `c${++this.#names}x${this.#random(1_000_000_000)}`
    const tasks = [
      { id: `${name}.gate`, type: 'approval', params: { message: 'go?' } },
      { ...this.#shell('exit 3'), id: `${name}.bad` },
    ]
    const { status, body } = await this.#send('POST', '/tasks', { tasks }, name)
    expect([name, status, body]).toEqual([name, 202, expect.anything()])
    const known = new Map(tasks.map(({ id }) => [id, []]))
    const { graph_id: id } = body as SubmitResponse
    const graph = { id, name, tasks: known, revision: 0, retries: 0, isPaused: false, held: [] }
    this.#graphs.push(graph)
    return graph
  }

  #shell(end: string): object {
    return {
      type: 'shell',
      params: { script: `echo "$TASKMILL_ATTEMPT" >> ${this.#log}; sleep 0.0${this.#random(5)}; ${end}` },
    }
  }

  /** The answer. The key makes it the same request however often it arrives. */
  async #send(method: string, path: string, body: object, key?: string): Promise<{ status: number; body: unknown }> {
    const headers = key === undefined ? {} : { 'idempotency-key': key }
    const init = { method, body: JSON.stringify(body), headers: headers as Record<string, string> }
    const response = await this.#control.fetch(path, init)
    return { status: response.status, body: await response.json() }
  }

  /** Adds a task or two, sometimes with an id that other graphs want, too, and takes away one that waits for the gate. */
  async #patch(graph: ChangedGraph): Promise<void> {
    const random = this.#random
    const { name, tasks } = graph
    const key = `${name}-${++this.#names}`
    const shared = `shared.${random(SHARED_IDS)}`
    const gate = `${name}.gate`
    const ids = [`${name}.n${this.#names}`, ...(random(3) === 0 && !tasks.has(shared) ? [shared] : [])]
    const others = [...tasks.keys()].filter((id) => id.startsWith(`${name}.n`))
    const waiting = [...tasks].filter(
      ([id, on]) => on.includes(gate) && ![...tasks.values()].some((o) => o.includes(id)),
    )
    const gone = random(3) === 0 ? waiting[random(waiting.length)]?.[0] : undefined
    const add = ids.map((id) => {
      const from = random(2) === 0 || id === shared ? gate : others[random(others.length)]
      return { ...this.#shell('exit 0'), id, depends_on: from === undefined || from === gone ? [] : [from] }
    })
    if (gone !== undefined && this.#holders.get(gone) === name) this.#holders.delete(gone)
    const changes = { revision: graph.revision, add, ...(gone !== undefined && { remove: [gone] }) }
    const { status, body } = await this.#send('PATCH', `/graphs/${graph.id}`, changes, key)
    expect([key, status, body]).toEqual([key, ids.length > 1 && status === 409 ? 409 : 200, expect.anything()])
    if (status === 409) {
      this.#counts.refused++
      expect((body as { error: string }).error).toContain(`task already active: ${shared} `)
      if (gone?.startsWith('shared.')) this.#holders.set(gone, name)
      return
    }
    this.#counts.patches++
    graph.revision++
    if (gone !== undefined) tasks.delete(gone)
    for (const { id, depends_on } of add) tasks.set(id, depends_on)
    if (ids.includes(shared)) {
      expect(this.#holders.get(shared), `who has ${shared} beside ${name}`).toBeUndefined()
      this.#holders.set(shared, name)
    }
    if (graph.isPaused) graph.held.push(...ids)
  }

  async #pauseOrResume(graph: ChangedGraph): Promise<void> {
    if (graph.isPaused) {
      const started = (await this.#tasksOf(graph)).filter(
        ({ id, status }) => graph.held.includes(id) && status !== 'pending',
      )
      expect(started, `started, although graph ${graph.id} was paused`).toEqual([])
    }
    const verb = graph.isPaused ? 'resume' : 'pause'
    const { status, body } = await this.#send('POST', `/graphs/${graph.id}/${verb}`, {})
    expect([graph.id, verb, status, body]).toEqual([graph.id, verb, 200, expect.anything()])
    graph.isPaused = !graph.isPaused
    graph.held = []
    this.#counts.pauses++
  }

  /** The task may be running still, or again, because an answer was lost: 409. */
  async #retry(graph: ChangedGraph): Promise<void> {
    const { status } = await this.#send('POST', `/tasks/${graph.name}.bad/retry`, {})
    expect([graph.id, status]).toEqual([graph.id, status === 409 ? 409 : 202])
    if (status !== 202) return
    graph.retries++
    this.#counts.retries++
  }

  /** The answer may have been lost: then it is the same answer again. */
  async #approve({ name }: ChangedGraph): Promise<void> {
    await until(
      () => this.#send('POST', `/tasks/${name}.gate/approve`, { who: 'ada' }),
      ({ status }) => status === 200,
      { patienceMs: REST_MS },
    )
  }

  async #tasksOf({ id }: ChangedGraph): Promise<TaskRecord[]> {
    const response = await this.#control.fetch(`/graphs/${id}/tasks`)
    expect([id, response.status]).toEqual([id, 200])
    return (await response.json()) as TaskRecord[]
  }

  /** Waits until all graphs have ended, looks whether all is as it must be, and deletes them. */
  async comeToRest(): Promise<void> {
    for (const graph of this.#graphs) {
      const tasks = await until(
        () => this.#tasksOf(graph),
        (all) => all.every(({ status }) => isTerminal(status)),
        { patienceMs: REST_MS },
      )
      const { name, revision, retries } = graph
      const ends = tasks.map(({ id, depends_on = [], status }) => [id, depends_on, status])
      const wanted = [...graph.tasks].map(([id, on]) => [id, on, id === `${name}.bad` ? 'failed' : 'success'])
      expect({ name, ends }).toEqual({ name, ends: wanted } as never)
      const bad = tasks.find(({ id }) => id === `${name}.bad`)!
      expect(bad.retried?.count ?? 0, `retries of ${bad.id}`).toBeGreaterThanOrEqual(retries)
      const shown = (await (await this.#control.fetch(`/graphs/${graph.id}`)).json()) as GraphDetails
      expect([name, shown.state, shown.revision ?? 0]).toEqual([name, 'failed', revision])
    }
    const runs = this.#lines().map((mark) => mark.slice(mark.indexOf('/') + 1)) // without the mark of the service
    expect(runs.filter((run, i) => runs.indexOf(run) !== i)).toEqual([])
    for (const [what, count] of Object.entries(this.#counts))
      if (what !== 'refused') expect([what, count]).not.toEqual([what, 0])
    for (const { id } of this.#graphs) {
      const answer = await this.#control.fetch(`/graphs/${id}`, { method: 'DELETE' })
      expect([204, 404]).toContain(answer.status) // an answer may get lost
    }
  }
}
