/**
 * A graph as the payloads of frames in a pack (`packs.ts`), and back. Pure.
 *
 * A graph that has ended is a head, and a row for each of its tasks. A row holds the id, the number and the times of a task.
 * The other fields of its entry in the state file follow, unless they are those of the row before. Fields that all tasks of a
 * graph share, or that follow from others, are left out. So a no-op task takes 40 bytes instead of 600, and a start builds the
 * task without its entry. Any other graph is the entries of its tasks.
 */
import { isoTime } from '../../shared/text/iso-time.ts'
import { type GraphOptions, graphOptions, NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { hasChildren } from '../rules/group-rule.ts'
import type { ValidTask } from '../rules/validate.ts'
import { Graph, RELEASED_EDGES, Task } from '../task/graph.ts'
import type { GraphPatches } from '../task/graph-patches.ts'
import { NO_RARE_STATE } from '../task/rare-state.ts'
import type { TaskStore } from '../task/task-store.ts'
import { endOf } from './recovered-graph.ts'
import { restoreTask } from './restored-task.ts'
import { type StoredTask, storedTask, type TaskEntry, taskEntry, type Writable, withStoredWhen } from './stored-task.ts'

/** A payload. Only the first one of a graph with rows has the `graph`. */
export interface GraphPart {
  readonly graph_ordinal: number
  readonly graph?: Head
  readonly rows?: readonly Row[]
  readonly entries?: readonly unknown[]
}

interface Head {
  readonly graph_id: string
  readonly trace_id: string
  /** Absent in files of earlier versions. */
  readonly submitted_by?: string
  readonly tenant?: string
  /** Milliseconds since 1970. */
  readonly created_at: number
  readonly graph?: GraphOptions
  readonly patched?: GraphPatches
}

/** Times in milliseconds: `updated` since the creation of the graph, the others back from `updated`. Small numbers are short. */
export type Row = [
  ...[id: string, seq: number, updated: number],
  ...[sinceStarted: Ms, sinceAttemptStarted: Ms, sinceFinished: Ms],
  ...[dependsOn?: string[] | null, rest?: Rest],
]
type Ms = number | null

/** The rest of an entry. */
type Rest = { -readonly [K in keyof TaskEntry]?: TaskEntry[K] | undefined }

/** Characters of a payload, which takes about a millisecond. */
const PART_CHARACTERS = 64 * 1024

/** The payloads of a graph. None if callers see none of its tasks. */
export function* compactedGraph(store: Pick<TaskStore, 'hasRecord'>, graph: Graph): Generator<string> {
  const isWhole = graph.live === 0 && graph.fanOuts === undefined && graph.tasks.every(fitsRow)
  const items = isWhole ? rowsOf(store, graph) : entriesOf(store, graph)
  const name = isWhole ? 'rows' : 'entries'
  const first = `{"graph_ordinal":${graph.ordinal},${isWhole ? `"graph":${JSON.stringify(headOf(graph))},` : ''}"${name}":[`
  let part = first
  let separator = ''
  for (const item of items) {
    part += separator + item
    separator = ','
    if (part.length < PART_CHARACTERS) continue
    yield `${part}]}`
    part = `{"graph_ordinal":${graph.ordinal},"${name}":[`
    separator = ''
  }
  if (separator !== '') yield `${part}]}`
}

function* entriesOf(store: Pick<TaskStore, 'hasRecord'>, graph: Graph): Generator<string> {
  let isFirst = true
  for (const task of graph.tasks) {
    if (!store.hasRecord(task)) continue
    yield JSON.stringify(taskEntry(store, task, isFirst))
    isFirst = false
  }
}

function* rowsOf(store: Pick<TaskStore, 'hasRecord'>, graph: Graph): Generator<string> {
  const createdAt = createdAtOf(graph)
  let last: Task | undefined
  let lastRest = ''
  for (const task of graph.tasks) {
    if (!store.hasRecord(task)) continue // deleted since: the journal has that
    const isSame = last !== undefined && haveSameRest(task, last)
    const rest = isSame ? lastRest : restJson(taskEntry(store, task, false), createdAt)
    const dependencies = task.dependsOn === undefined ? 'null' : JSON.stringify(task.dependsOn)
    const start = rowStart(task, createdAt)
    if (rest !== lastRest) yield `${start},${dependencies},${rest}]`
    else yield task.dependsOn === undefined ? `${start}]` : `${start},${dependencies}]`
    last = task
    lastRest = rest
  }
}

/** As a start finds it in the entries. */
const createdAtOf = ({ tasks }: Graph): number => tasks[0]!.createdAt

const headOf = (graph: Graph): Head => ({
  graph_id: graph.id,
  trace_id: graph.traceId,
  ...(graph.submittedBy !== undefined && { submitted_by: graph.submittedBy }),
  ...(graph.tenant !== undefined && { tenant: graph.tenant }),
  created_at: createdAtOf(graph),
  ...(graph.options !== NO_GRAPH_OPTIONS && { graph: graph.options }),
  ...(graph.patched !== undefined && { patched: graph.patched }),
})

/** Whether a row can hold the task, for which a restart must not decide or do anything. */
const fitsRow = (task: Task): boolean =>
  task.isTerminal &&
  !task.isDeleted &&
  !hasChildren(task.options) &&
  task.childOf === undefined &&
  task.rare.process === undefined

/** The beginning of a row, without the dependencies and the rest. */
function rowStart(task: Task, createdAt: number): string {
  const at = task.updatedAt ?? task.createdAt
  const since = (ms: number | undefined): Ms => (ms === undefined ? null : at - ms)
  const { startedAt, finishedAt } = task
  const attemptStartedAt = task.runStatus === undefined ? startedAt : task.attemptStartedAt
  return `[${JSON.stringify(task.id)},${task.seq},${at - createdAt},${since(startedAt)},${since(attemptStartedAt)},${since(finishedAt)}`
}

/** The rest of `entry` as JSON. Clears the other fields of `entry`: a copy would take most of the time. */
function restJson(entry: TaskEntry, createdAt: number): string {
  const rest = entry as Rest
  const error = entry.runtime?.error
  rest.runtime = error && ({ error } as Rest['runtime'])
  if (rest.result !== null) rest.run_status = undefined // see `restoreTask`
  if (rest.input === rest.params) rest.input = undefined
  if (rest.created_at === isoTime(createdAt)) rest.created_at = undefined
  rest.id = undefined
  rest.depends_on = undefined
  rest.seq = undefined
  rest.execution_category = undefined
  rest.graph_id = undefined
  rest.graph_ordinal = undefined
  rest.trace_id = undefined
  rest.trace_state = undefined
  rest.submitted_by = undefined
  rest.tenant = undefined
  rest.graph = undefined
  rest.patched = undefined
  rest.scope = undefined
  rest.updated_at = undefined
  rest.started_at = undefined
  rest.finished_at = undefined
  return JSON.stringify(rest)
}

/** Whether the rests of two rows are surely alike. Objects are compared by identity: cheap, and enough for constants. */
const haveSameRest = (a: Task, b: Task): boolean =>
  a.options === b.options &&
  a.result === b.result &&
  a.params === b.params &&
  a.input === b.input &&
  a.status === b.status &&
  a.attempt === b.attempt &&
  a.type === b.type &&
  a.toolName === b.toolName &&
  a.removal === b.removal &&
  a.rare === NO_RARE_STATE &&
  b.rare === NO_RARE_STATE

/** Builds a graph from its head and rows, as `recoverGraph` builds it from its entries. */
export class CompactedGraph {
  readonly #graph: Graph
  /** The highest number of its changes. */
  lastSeq = 0
  /** Each row is read into `stored` in turn. */
  #last: { readonly stored: Writable<StoredTask>; readonly task: Task } | undefined

  constructor(ordinal: number, { graph_id, trace_id, submitted_by, tenant, created_at, graph, patched }: Head) {
    const options = graph === undefined ? NO_GRAPH_OPTIONS : (graphOptions(graph) ?? NO_GRAPH_OPTIONS)
    const identity = {
      id: graph_id,
      ordinal,
      traceId: trace_id,
      submittedBy: submitted_by,
      tenant,
      createdAt: created_at,
      options,
    }
    this.#graph = new Graph(identity, RELEASED_EDGES)
    this.#graph.patched = patched
  }

  add(rows: readonly Row[]): void {
    for (const row of rows) this.#add(row)
  }

  #add([id, seq, updated, sinceStarted, sinceAttemptStarted, sinceFinished, dependsOn, given]: Row): void {
    const graph = this.#graph
    const updatedAt = graph.createdAt + updated
    const time = (since: Ms) => (since === null ? undefined : updatedAt - since)
    const stored: Writable<StoredTask> = given === undefined ? this.#last!.stored : storedTask(given as TaskEntry)
    stored.id = id
    stored.seq = seq
    stored.depends_on = dependsOn ?? undefined
    stored.created_at ??= graph.createdAt
    stored.updated_at = updatedAt
    stored.started_at = time(sinceStarted)
    stored.attempt_started_at = time(sinceAttemptStarted)
    stored.finished_at = time(sinceFinished)
    const options = given === undefined ? this.#last!.task.options : undefined
    const task = new Task(graph, graph.tasks.length, withStoredWhen(stored) as ValidTask, options)
    restoreTask(task, stored)
    if (stored.replaced) task.removal = 'replaced'
    graph.addRecovered(task)
    this.lastSeq = Math.max(this.lastSeq, seq)
    this.#last = { stored, task }
  }

  /** The whole graph. Called after the last row. */
  ended(): Graph {
    const graph = this.#graph
    graph.endedAt = endOf(graph) ?? Date.now()
    graph.releaseEdges()
    return graph
  }
}

/** The entries of a graph that was built from rows. */
export const entriesOfRows = ({ tasks }: Graph): StoredTask[] =>
  tasks.map((task, i) => storedTask(taskEntry(ALL_RECORDS, task, i === 0)))

const ALL_RECORDS = { hasRecord: () => true }
