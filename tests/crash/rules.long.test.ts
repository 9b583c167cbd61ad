/**
 * Kills the service at random moments while graphs with rules run, and compares what comes of them with the model.
 *
 * Each round starts it on the directory of the round before. Clients submit graphs with handlers, clean-ups, conditions,
 * failures that do not matter, tasks that run for each element of a list, groups, and entries of `on_end`, and cancel tasks, cancel and pause graphs, until SIGKILL. The next start resumes some of these, and pauses and resumes a type. After the last start every acknowledged graph comes to
 * its end. Each task must have ended as the model allows, given how its dependencies ended, and must not have started
 * before them, nor during a pause. Only what somebody cancelled may be cancelled.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { ON_END_STATES, type OnEndState } from '../../shared/contract/on-end.ts'
import { GraphModel, type ModelTask } from '../model/graph-model.ts'
import { type Control, startControl } from '../support/control.ts'
import { CrashStory } from '../support/crash-story.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { exitOf } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

type SentTask = ModelTask & {
  readonly type?: string
  readonly tasks?: readonly SentTask[]
  readonly params?: object
  readonly depends_on: readonly string[]
  readonly not_before?: number
  readonly timeout?: number
  readonly retry?: number
}

interface Acknowledged {
  readonly tasks: readonly SentTask[]
  /** Tasks that somebody may have cancelled. */
  readonly cancelled: Set<string>
  /** The states in which the entries of its `on_end` run. */
  readonly endings: readonly OnEndState[]
  /** The pauses of the graph. */
  readonly pauses: Pauses
  /** The group of the graph, of which `GROUP_LIMIT` run at a time. */
  readonly group: string | undefined
}

const GROUP_LIMIT = 2

/** From the answer to a pause to the request that ends it: milliseconds since 1970. */
type Pauses = { readonly from: number; to: number }[]

const FOR_EVER = Number.POSITIVE_INFINITY

const isOpen = (pauses: Pauses): boolean => pauses.at(-1)?.to === FOR_EVER

/** This type is paused and resumed for all graphs. */
const PAUSED_TYPE = 'sleep'

/** A request to pause or to resume what `path` names. False if there is nothing to pause any more. */
async function change(control: Control, verb: 'pause' | 'resume', path: string, pauses: Pauses): Promise<boolean> {
  if (verb === 'resume' && isOpen(pauses)) pauses.at(-1)!.to = Date.now()
  const body = path === '' ? JSON.stringify({ type: PAUSED_TYPE }) : null
  const { status } = await control.fetch(`${path}/${verb}`, { method: 'POST', body })
  expect([200, 409]).toContain(status)
  if (verb === 'pause' && status === 200) pauses.push({ from: Date.now(), to: FOR_EVER })
  return status === 200
}

/** Acknowledged pauses have to be there after a kill. Resumes each with a chance of one in `most`. */
async function resumeSome(
  control: Control,
  known: Map<string, Acknowledged>,
  random: Random,
  most: number,
): Promise<void> {
  for (const [id, { pauses }] of known) {
    if (!isOpen(pauses)) continue
    const { state, pause } = (await (await control.fetch(`/graphs/${id}`)).json()) as GraphDetails
    if (state !== 'running') continue
    expect(pause, `the pause of ${id}`).toBeDefined()
    if (random(most) === 0) await change(control, 'resume', `/graphs/${id}`, pauses)
  }
}

async function toggleType(control: Control, pauses: Pauses): Promise<void> {
  const listed = (await (await control.fetch('/pauses')).json()) as object[]
  expect(listed.length, 'pauses of types').toBe(isOpen(pauses) ? 1 : 0)
  await change(control, isOpen(pauses) ? 'resume' : 'pause', '', pauses)
}

/**
 * Whether an attempt of a task began during one of `pauses`. That of an approval begins when it ends. A task that has children
 * goes on with them after a kill.
 */
function startedIn(pauses: Pauses, { type, started_at, attempts = [], runtime, child_count }: TaskRecord): boolean {
  const later = child_count === undefined ? [runtime?.started_at, ...attempts.map((attempt) => attempt.started_at)] : []
  const starts = [started_at, ...later]
  const times = starts.flatMap((at) => (at === undefined || type === 'approval' ? [] : [Date.parse(at)]))
  return times.some((at) => pauses.some(({ from, to }) => from < at && at < to))
}

/** In this group the oldest graph is cancelled for a new one. */
const IMPATIENT = 'impatient'

function randomGraph(random: Random): SentTask[] {
  const tasks: SentTask[] = []
  for (let i = 2 + random(10); i > 0; i--) tasks.push(randomTask(random, tasks))
  return tasks
}

/** A list in the task, or the dependencies of the first dependency. */
function randomList(random: Random, first: SentTask | undefined, element: unknown) {
  const more = { ...(random(2) === 0 && { max_parallel: 1 + random(3) }), ...(random(3) === 0 && { fail_fast: true }) }
  if (first === undefined || random(2) === 0)
    return { for_each: Array.from({ length: random(5) }, () => element), ...more }
  return { for_each: { $from: first.id, path: '/depends_on' }, elements: first.depends_on.length, ...more }
}

/** The next task of a graph; of a group none is a group, or has a list. */
function randomTask(random: Random, before: readonly SentTask[], isInGroup = false): SentTask {
  const i = before.length
  const depends_on = Array.from({ length: i === 0 ? 0 : random(3) }, () => `t${random(i)}`)
  const rule = {
    ...(random(2) === 0 && { run_if: (['success', 'failed', 'always'] as const)[random(3)]! }),
    ...(random(4) === 0 && { continue_on_error: true }),
    ...(random(4) === 0 && { priority: random(3) - 1 }),
    ...(random(4) === 0 && { not_before: random(60) }),
  }
  const [first] = depends_on
  const equals = (['success', 'failed', 'skipped'] as const)[random(3)]!
  const when = random(3) === 0 && first !== undefined && { when: { $from: first, path: '/status', equals } as const }
  const source = before.find(({ id }) => id === first)
  const list = !isInGroup && random(3) === 0 ? randomList(random, source, random(60)) : undefined
  const common = { id: `t${i}`, depends_on, ...rule, ...when, ...list }
  if (!isInGroup && random(5) === 0) {
    const members: SentTask[] = []
    for (let left = 1 + random(4); left > 0; left--) members.push(randomTask(random, members, true))
    return { ...common, tasks: members }
  }
  const kind = random(7)
  if (kind < 2) return { ...common, type: 'noop' }
  const isOwnList = Array.isArray(list?.for_each)
  if (kind < 4) return { ...common, type: 'sleep', params: { duration_ms: isOwnList ? { $item: '' } : random(60) } }
  // Nobody answers: it fails.
  if (kind === 4) return { ...common, type: 'approval', timeout: 1 + random(60) }
  return { ...common, type: 'file', params: { action: 'read', path: '/no/such/file' }, retry: random(2) }
}

function randomGroup(random: Random) {
  const which = random(4)
  if (which === 0) return { group: IMPATIENT, limit: GROUP_LIMIT, on_full: 'cancel_oldest' }
  return which === 1 ? { group: 'patient', limit: GROUP_LIMIT } : undefined
}

/** Entries of `on_end`, but for their states. */
const ENTRIES = [
  { type: 'noop' },
  { type: 'sleep', params: { duration_ms: 20 } },
  { type: 'file', params: { action: 'read', path: '/no/such/file' }, retry: 1 },
]

const randomEndings = (random: Random): OnEndState[] =>
  Array.from({ length: random(3) }, () => ON_END_STATES[random(ON_END_STATES.length)]!)

/** One client, until the service is gone. */
async function client(control: Control, known: Map<string, Acknowledged>, random: Random): Promise<void> {
  try {
    for (;;) {
      const tasks = randomGraph(random)
      const sent = tasks.map(({ elements: _, ...task }) => task)
      const concurrency = randomGroup(random)
      const endings = randomEndings(random)
      const on_end = endings.map((when) => ({ when, ...ENTRIES[random(ENTRIES.length)]! }))
      const response = await control.post({ tasks: sent, scope: 'graph', concurrency, on_end })
      expect(response.status).toBe(202)
      const { graph_id } = (await response.json()) as { graph_id: string }
      const all = [...tasks.map(({ id }) => id), ...endings.map((_, i) => `on_end/${i}`)]
      const cancelled = new Set(concurrency?.group === IMPATIENT ? all : [])
      const pauses: Pauses = []
      known.set(graph_id, { tasks, endings, pauses, cancelled, group: concurrency?.group })
      await control.fetch(`/graphs/${graph_id}?wait_ms=${random(30)}`)
      const next = random(5)
      if (next === 0) {
        const { id } = tasks[random(tasks.length)]!
        cancelled.add(id)
        await control.fetch(`/graphs/${graph_id}/tasks/${id}/cancel`, { method: 'POST' })
      } else if (next === 1) {
        for (const id of all) cancelled.add(id)
        await control.fetch(`/graphs/${graph_id}/cancel`, { method: 'POST' })
      } else if (next === 2) {
        await change(control, 'pause', `/graphs/${graph_id}`, pauses)
      }
    }
  } catch (error) {
    // The service was killed in the middle of a call. Anything else is a fault.
    await exitOf(control)
    if (control.process.signalCode === null) throw error
    if (error instanceof Error && error.name !== 'TypeError' && !/ECONN|closed|reset|JSON/i.test(`${error}`))
      throw error
  }
}

/** Stands for the start of a task that never started. */
const LATER = '9999-01-01T00:00:00.000Z'

/** What is wrong with the end of a graph. Each task of it stands after those that it depends on. */
async function faultsOf(
  control: Control,
  graphId: string,
  { tasks: submitted, endings, cancelled, pauses }: Acknowledged,
  typePauses: Pauses,
): Promise<string[]> {
  let graph: GraphDetails
  do graph = (await (await control.fetch(`/graphs/${graphId}?wait_ms=20000`)).json()) as GraphDetails
  while (graph.state === 'running')
  const records = (await (await control.fetch(`/graphs/${graphId}/tasks`)).json()) as TaskRecord[]
  const byId = new Map(records.map((record) => [record.id, record]))
  const others = records.filter(({ id }) => !id.startsWith('on_end/')).map(({ id }) => id)
  const tasks = [...submitted, ...endings.map((at_end, i): SentTask => ({ id: `on_end/${i}`, at_end, depends_on: [] }))]
  const model = new GraphModel(tasks)
  const faults: string[] = []
  for (const record of records) {
    const all = record.tool_name === PAUSED_TYPE ? [...pauses, ...typePauses] : pauses
    if (startedIn(all, record)) faults.push(`${record.id} started during a pause`)
  }
  for (const { id, depends_on: before, fail_fast, not_before = 0, tasks: members, at_end } of tasks) {
    const depends_on = at_end === undefined ? before : others
    const { status, error, created_at, started_at = LATER } = byId.get(id)!
    const early = depends_on.filter((dependency) => byId.get(dependency)!.finished_at! > started_at)
    if (early.length > 0) faults.push(`${id} started before ${early} had ended`)
    const readyAt = Math.max(...[created_at, ...depends_on.map((each) => byId.get(each)!.finished_at!)].map(Date.parse))
    if (Date.parse(started_at) < readyAt + not_before) faults.push(`${id} started before its delay was over`)
    if (status === 'cancelled' && !cancelled.has(id)) faults.push(`${id} was cancelled by nobody`)
    const children = records.filter(({ parent }) => parent === id)
    if (status === 'success' || status === 'failed' || children.length > 0) model.started(id)
    if (members !== undefined) tellOfMembers(model, children)
    // A failure may keep others from starting, so the model hears of failures after successes, and of cancels last.
    for (const end of ['success', 'failed', 'cancelled'] as const) {
      const ended = members === undefined ? children.filter((each) => each.status === end) : []
      // With fail_fast nothing starts after a failure, so all that failed ran at the same time.
      const ranTogether = end === 'failed' && fail_fast === true
      if (ranTogether) for (const child of ended) model.started(child.id)
      for (const child of ended) {
        if (end !== 'cancelled' && !ranTogether) model.started(child.id)
        model.ended(child.id, end, undefined)
      }
    }
    model.ended(id, status, error)
  }
  if (model.open.length === 0 && model.state !== graph.state) faults.push(`the graph is ${graph.state}: ${model.state}`)
  return [...faults, ...model.faults]
}

/** Tells the model how the children of a group ended, in the order in which they did: those that ran had started before. */
function tellOfMembers(model: GraphModel, children: readonly TaskRecord[]): void {
  const moments = children.flatMap((child) => {
    const { status, started_at, finished_at } = child
    const end = { at: finished_at!, rank: 1, child }
    const ran = status === 'success' || status === 'failed'
    return ran ? [{ at: started_at!, rank: 2, child }, end] : [end]
  })
  // Times are in milliseconds: of several in one, a task that follows another starts after the end of that one.
  // Of others, starts count first: after the failure of another nothing may start.
  moments.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : b.rank - a.rank))
  const open = new Set(moments)
  while (open.size > 0) {
    const isPossible = ({ rank, child: { id, status, error } }: (typeof moments)[number]) => {
      if (rank === 2) return model.mayStart(id)
      if (status === 'skipped') return model.skips(id).has(error ?? '')
      return status === 'cancelled' || model.stateOf(id) === 'running'
    }
    const [first] = open
    const next = [...open].find((moment) => moment.at === first!.at && isPossible(moment)) ?? first!
    open.delete(next)
    const { id, status, error } = next.child
    if (next.rank === 2) model.started(id)
    else model.ended(id, status, error)
  }
}

/** Graphs that started while as many of their group ran as may run, each with those that ran then. All have ended. */
async function tooMany(control: Control, known: ReadonlyMap<string, Acknowledged>): Promise<Map<string, string[]>> {
  const runs: { readonly id: string; readonly group: string; readonly from: string; readonly to: string }[] = []
  for (const [id, { group }] of known) {
    if (group === undefined) continue
    const records = (await (await control.fetch(`/graphs/${id}/tasks`)).json()) as TaskRecord[]
    const starts = records.flatMap(({ started_at = [] }) => started_at).sort()
    const ends = records.map(({ finished_at }) => finished_at!).sort()
    if (starts.length > 0) runs.push({ id, group, from: starts[0]!, to: ends.at(-1)! })
  }
  const atOnce = ({ group, from }: (typeof runs)[number]) =>
    runs.filter((other) => other.group === group && other.from <= from && from < other.to)
  const wrong = runs.filter((run) => atOnce(run).length > GROUP_LIMIT)
  return new Map(wrong.map((run) => [run.id, atOnce(run).map(({ id }) => id)]))
}

test(
  `graphs with rules end as the model allows (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const random = randomNumbers(SEED + 2)
    const known = new Map<string, Acknowledged>()
    const story = new CrashStory()
    const typePauses: Pauses = []
    const options = {
      dataDir: join(dir.path, 'data'),
      flags: ['--kill-grace', '100ms', '--persist-interval', '20ms', '--max-concurrency', '4'],
    }
    for (let round = 0; round < ROUNDS; round++) {
      await using control = await startControl(options)
      story.follow(control)
      await resumeSome(control, known, random, 2)
      await toggleType(control, typePauses)
      const clients = Array.from({ length: 3 }, () => client(control, known, random))
      await Bun.sleep(10 + random(150))
      // On a busy machine the first answers take longer than a round.
      await until(
        () => known.size,
        (graphs) => graphs > round + 1,
      )
      control.process.kill('SIGKILL')
      await control.process.exited
      await Promise.all(clients)
    }
    await using control = await startControl(options)
    story.follow(control)
    if (isOpen(typePauses)) await toggleType(control, typePauses)
    await resumeSome(control, known, random, 1)
    // The answer to a pause may have been lost.
    for (const id of known.keys()) await change(control, 'resume', `/graphs/${id}`, [])
    const faults = new Map<string, string[]>()
    for (const [graphId, acknowledged] of known)
      faults.set(graphId, await faultsOf(control, graphId, acknowledged, typePauses))
    for (const [graphId, all] of await tooMany(control, known)) {
      for (const id of all) faults.get(id)!.push(`ran when ${graphId} started, which had no place`)
    }
    await story.noFaults(control, faults)
    expect(known.size).toBeGreaterThan(ROUNDS)
  },
  limitOf(ROUNDS),
)
