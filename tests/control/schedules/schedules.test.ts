/**
 * A model of schedules with a clock of its own: one service with a directory, which is killed and started again, and replicas
 * that share rows, of which any may believe that a schedule is its own. Whatever happens, each due time has one graph, or
 * is counted as missed or skipped, or waits. Each one that is missed is told once, under one id.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type KeptSchedule,
  type KeptSchedules,
  Moved,
  newProgress,
  OwnSchedules,
  type ScheduleChange,
} from '../../../control/log/kept-schedules.ts'
import {
  type GivenFields,
  MAX_RUNNING,
  type ScheduleDefinition,
  type ScheduleFailure,
  type ScheduleProgress,
} from '../../../control/rules/schedule.ts'
import { dueTimes } from '../../../control/rules/schedule-times.ts'
import { Schedules, type ScheduleVerbs } from '../../../control/schedules/schedules.ts'
import type { Change } from '../../../control/task/change.ts'
import type { Graph } from '../../../control/task/graph.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { silentLog } from '../../../shared/logs/log.ts'

const MINUTE = 60_000
const START = Date.parse('2026-03-01T00:00:00Z')
const NAME = 'model'

type End = 'success' | 'failed' | 'cancelled'

interface Service {
  readonly schedules: Schedules
  readonly kept: KeptSchedules
  readonly graphs: Map<string, Graph>
  readonly watchers: ((change: Change) => void)[]
}

/** What survives services. */
abstract class World {
  now = START
  /** The due times of the graphs that were accepted. */
  readonly dues: number[] = []
  /** Callbacks that are not kept. */
  tellingFaults = 0
  /** The bodies of callbacks, by id. */
  readonly told = new Map<string, ScheduleFailure>()
  readonly #ends = new Map<string, End>()
  /** What the next submissions meet. */
  readonly faults: ('before' | 'after')[] = []
  readonly services: Service[] = []
  #count = 0
  #steps = 0

  abstract newKept(): KeptSchedules
  /** Keeps a graph with its change, all or nothing. */
  abstract commit(change: ScheduleChange): void
  abstract get progress(): ScheduleProgress

  async step(): Promise<void> {
    this.#steps++
    await Promise.resolve()
  }

  async start(): Promise<void> {
    const graphs = new Map<string, Graph>()
    const watchers: ((change: Change) => void)[] = []
    const kept = this.newKept()
    const store = {
      graph: (id: string) => graphs.get(id),
      watch: (watcher: (change: Change) => void) => void watchers.push(watcher),
    }
    const schedules = new Schedules({ store: store as never, kept, maxSchedules: 1, log: silentLog() })
    schedules.use(this.#verbs(graphs))
    await schedules.recover()
    this.services.push({ schedules, kept, graphs, watchers })
    schedules.start()
  }

  #verbs(graphs: Map<string, Graph>): ScheduleVerbs {
    return {
      submit: async (_body, changeOf) => {
        await this.step()
        const fault = this.faults.shift()
        if (fault === 'before') throw new ServiceError(503, 'no room')
        const id = `graph-${++this.#count}`
        const graph = {
          id,
          createdAt: this.now,
          options: { labels: { schedule: NAME } },
          traceId: '',
        } as never as Graph
        const change = changeOf(graph)
        this.commit(change)
        if (fault === 'after') throw new ServiceError(503, 'it is removed again')
        if (change.due !== undefined) this.dues.push(change.due)
        graphs.set(id, graph)
        return graph
      },
      cancelGraph: async (id) => {
        await this.step()
        this.end(id, 'cancelled')
      },
      deleteGraph: () => this.step(),
      endOf: async (id) => {
        await this.step()
        const state = this.#ends.get(id)
        return state && { state, at: this.now }
      },
      tell: async (callbacks) => {
        await this.step()
        if (this.tellingFaults > 0) {
          this.tellingFaults--
          throw new ServiceError(503, 'nothing is kept now')
        }
        for (const { id, body } of callbacks) {
          if (this.told.has(id)) expect(JSON.parse(body)).toEqual(this.told.get(id))
          this.told.set(id, JSON.parse(body))
        }
        await this.step()
      },
    }
  }

  end(id: string, state: End): void {
    if (this.#ends.has(id)) return
    this.#ends.set(id, state)
    for (const { graphs, watchers } of this.services) {
      const graph = graphs.get(id)
      if (graph === undefined) continue
      Object.assign(graph, { endedAt: this.now })
      for (const watcher of watchers) watcher({ kind: 'graph-ended', graph, at: this.now } as Change)
    }
  }

  kill(index: number): void {
    for (const { schedules } of this.services.splice(index, 1)) schedules.stop()
  }

  /** Has everybody look, until nothing happens any more. */
  async settle(): Promise<void> {
    for (const { kept } of this.services) kept.onChange()
    for (let before = -1, calm = 0; calm < 2; ) {
      await Bun.sleep(1)
      calm = before === this.#steps ? calm + 1 : 0
      before = this.#steps
    }
  }
}

/** A service with a directory. What it has noted is there after a kill. */
class OwnWorld extends World {
  readonly #definitions = new Map<string, ScheduleDefinition>()
  readonly #progress = new Map<string, ScheduleProgress>()

  newKept(): KeptSchedules {
    const note = ([, kind, name, value]: readonly unknown[]) => {
      const notes: Map<string, unknown> = kind === 'schedule' ? this.#definitions : this.#progress
      notes.set(name as string, value)
    }
    const kept = new OwnSchedules(note, this.#definitions, this.#progress)
    return Object.assign(kept, { now: () => this.now })
  }

  commit({ name, progress }: ScheduleChange): void {
    this.#progress.set(name, progress)
  }

  get progress(): ScheduleProgress {
    return this.#progress.get(NAME)!
  }
}

/** Rows that replicas share: a change is made to the version that was read, or not at all. */
class SharedWorld extends World {
  #row: KeptSchedule | undefined
  /** How many replicas believe that the schedule is theirs. */
  believers = 1
  /** Reads that the database does not answer. */
  readFaults = 0

  newKept(): KeptSchedules {
    const kept: KeptSchedules = {
      now: () => this.now,
      filesOf: undefined,
      readsFiles: false,
      isHere: () => this.services.findIndex((service) => service.kept === kept) < this.believers,
      onChange: () => {},
      read: async (known) => {
        await this.step()
        if (this.readFaults > 0) {
          this.readFaults--
          throw new ServiceError(503, 'no answer')
        }
        return new Map(this.#row === undefined || known.get(NAME) === this.#row.version ? [] : [[NAME, this.#row]])
      },
      keep: async (_name, known, next) => {
        await this.step()
        if (this.#row?.version !== known?.version) throw new Moved('another one was first')
        this.#row = { ...next!, version: (known?.version ?? 0) + 1 }
        return this.#row.version
      },
      after: (version) => version + 1,
    }
    return kept
  }

  commit({ version, progress }: ScheduleChange): void {
    if (this.#row?.version !== version) throw new Moved('another one was first')
    this.#row = { ...this.#row, progress, version: version + 1 }
  }

  get progress(): ScheduleProgress {
    return this.#row!.progress
  }
}

const someFields: fc.Arbitrary<GivenFields> = fc
  .record({
    times: fc.constantFrom<GivenFields>({ every: MINUTE }, { cron: '*/2 * * * *' }, { every: 7_000 }),
    overlap: fc.constantFrom('skip', 'queue', 'cancel', 'allow' as const),
    catch_up: fc.constantFrom('none', 'last', 'all' as const),
    jitter: fc.constantFrom(0, 5_000),
  })
  .filter(({ overlap, catch_up }) => catch_up !== 'all' || overlap === 'queue' || overlap === 'allow')
  .map(({ times, ...fields }) => ({ ...times, ...fields, on_failure: { url: 'http://a.example' } }))

interface Event {
  readonly kind:
    | 'time passes'
    | 'the clock jumps'
    | 'graphs end'
    | 'one is killed'
    | 'some believe it theirs'
    | 'refused before'
    | 'refused after'
    | 'telling fails'
    | 'triggered'
  readonly n: number
}

const event = (kind: Event['kind'], min: number, max: number): fc.Arbitrary<Event> =>
  fc.record({ kind: fc.constant(kind), n: fc.integer({ min, max }) })

const EVENTS = [
  event('time passes', 0, 3 * MINUTE),
  event('the clock jumps', -10 * MINUTE, 10 * MINUTE),
  event('graphs end', 0, 3),
  event('one is killed', 0, 2),
  event('refused before', 0, 0),
  event('telling fails', 1, 2),
  event('triggered', 1, 3),
]

/** The database may have kept a graph that is refused after all. */
const SHARED_EVENTS = [...EVENTS, event('some believe it theirs', 0, 3), event('refused after', 0, 0)]

async function happen(world: World, { kind, n }: Event): Promise<void> {
  if (kind === 'time passes' || kind === 'the clock jumps') world.now += n
  if (kind === 'refused before') world.faults.push('before')
  if (kind === 'refused after') world.faults.push('after')
  if (kind === 'telling fails') world.tellingFaults = n
  if (kind === 'some believe it theirs' && world instanceof SharedWorld) world.believers = n
  const running = world.progress.runs.filter(({ state }) => state === undefined)
  if (kind === 'graphs end')
    for (const [i, { graph_id }] of running.slice(0, n).entries())
      world.end(graph_id, i % 2 === 0 ? 'failed' : 'success')
  if (kind === 'triggered') {
    const triggered = world.services
      .slice(0, n)
      .map(({ schedules }) =>
        schedules
          .change(NAME, () => schedules.trigger(schedules.get(NAME)!))
          .catch((error) => expect(error).toBeInstanceOf(ServiceError)),
      )
    await Promise.all(triggered) // at the same time
  }
  if (kind === 'one is killed') {
    world.kill(n % world.services.length)
    await world.start()
  }
  await world.settle()
}

/** Each due time up to the last settled one has exactly one fate. */
function check(world: World, fields: GivenFields): void {
  const { settled, missed, skipped, waiting, runs, untold = [] } = world.progress
  const times = dueTimes(fields, START)
  const dues: number[] = []
  for (let due = times.next(START); due !== undefined && due <= settled; due = times.next(due)) dues.push(due)
  const fates = [...world.dues, ...waiting]
  expect(new Set(fates).size).toBe(fates.length)
  expect(dues).toEqual(expect.arrayContaining(fates))
  expect(fates.length + missed + skipped).toBe(dues.length)
  expect(runs.filter(({ due }) => due !== undefined).every(({ due }) => world.dues.includes(due!))).toBe(true)
  const failures = [...world.told.values(), ...untold]
  expect(failures.reduce((sum, { reason, missed = Number(reason === 'refused') }) => sum + missed, 0)).toBe(missed)
  const failed = runs.filter(({ state }) => state === 'failed').map(({ graph_id }) => graph_id)
  expect(failures.map(({ graph_id }) => graph_id)).toEqual(expect.arrayContaining(failed))
  const others = runs.filter(({ state }) => state !== 'failed').map(({ graph_id }) => graph_id)
  expect(failures.filter(({ graph_id }) => graph_id !== undefined && others.includes(graph_id))).toEqual([])
  if (fields.overlap !== 'skip' && dues.length < MAX_RUNNING / 2) expect(skipped).toBe(0)
}

async function play(world: World, replicas: number, fields: GivenFields, events: readonly Event[]): Promise<void> {
  for (let i = 0; i < replicas; i++) await world.start()
  const { schedules } = world.services[0]!
  const graph = { tasks: [] }
  const definition: ScheduleDefinition = { fields, graph, since: START, created_at: START, updated_at: START }
  await schedules.change(NAME, () => schedules.put(NAME, definition, dueTimes(fields, START), false))
  expect(world.progress).toEqual(newProgress(START))
  try {
    for (const each of events) {
      await happen(world, each)
      check(world, fields)
    }
  } finally {
    while (world.services.length > 0) world.kill(0)
  }
}

test('a service with a directory settles each due time once, over kills and jumps of the clock', async () => {
  const events = fc.array(fc.oneof(...EVENTS), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(someFields, events, (fields, some) => play(new OwnWorld(), 1, fields, some)),
    { numRuns: 25 },
  )
})

test('replicas settle each due time once, whoever believes that it is his', async () => {
  const events = fc.array(fc.oneof(...SHARED_EVENTS), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(someFields, events, (fields, some) => play(new SharedWorld(), 3, fields, some)),
    { numRuns: 25 },
  )
})

test('a replica starts although the database does not answer for a moment', async () => {
  const world = new SharedWorld()
  world.readFaults = 2
  await world.start()
  expect([world.readFaults, world.services.length]).toEqual([0, 1])
  world.kill(0)
})
