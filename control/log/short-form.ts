/**
 * The short form of a graph that has ended: a head, and a row for each of its tasks. Pure.
 *
 * A row holds the id, the number and the times of a task. The other fields of its entry in the state file follow, unless they
 * are those of the row before. Fields that all tasks of a graph share, or that follow from others, are left out. So the short
 * form of a no-op task takes 40 bytes instead of 600, and a start builds the task without its entry.
 */
import { isoTime } from '../../shared/text/iso-time.ts'
import { Graph, RELEASED_EDGES, Task } from '../graph/graph.ts'
import { type GraphOptions, graphOptions, NO_GRAPH_OPTIONS } from '../graph/graph-options.ts'
import type { ValidTask } from '../graph/validate.ts'
import { endOf } from './recovered-graph.ts'
import { restoreTask, timeOf } from './restored-task.ts'
import { type StoredTask, withStoredWhen } from './stored-task.ts'

export interface ShortHead {
  readonly graph_ordinal: number
  readonly graph_id: string
  readonly trace_id: string
  /** Milliseconds since 1970. */
  readonly created_at: number
  readonly graph?: GraphOptions
}

/** Times in milliseconds: `updated` since the creation of the graph, the others back from `updated`. Small numbers are short. */
export type ShortRow = [
  ...[id: string, seq: number, updated: number],
  ...[sinceStarted: Ms, sinceAttemptStarted: Ms, sinceFinished: Ms],
  ...[dependsOn?: string[] | null, rest?: Rest],
]
type Ms = number | null

/** The rest of an entry. Each row is read into it in turn. */
type Rest = { -readonly [K in keyof StoredTask]?: StoredTask[K] | undefined }

export const shortHead = ({ ordinal, id, traceId, options, tasks }: Graph): ShortHead => ({
  graph_ordinal: ordinal,
  graph_id: id,
  trace_id: traceId,
  created_at: tasks[0]!.createdAt, // as a start finds it in the entries
  ...(options !== NO_GRAPH_OPTIONS && { graph: options }),
})

/** Whether a row can hold the task, for which a restart must not decide or do anything. */
export const fitsRow = (task: Task): boolean =>
  task.isTerminal && task.fanOutRule === undefined && task.childOf === undefined && task.process === undefined

/** The beginning of a row, without the dependencies and the rest. */
export function rowStart(task: Task, { created_at }: ShortHead): string {
  const at = task.updatedAt ?? task.createdAt
  const since = (ms: number | undefined): Ms => (ms === undefined ? null : at - ms)
  const { startedAt, finishedAt } = task
  const attemptStartedAt = task.runStatus === undefined ? startedAt : task.attemptStartedAt
  return `[${JSON.stringify(task.id)},${task.seq},${at - created_at},${since(startedAt)},${since(attemptStartedAt)},${since(finishedAt)}`
}

/** The rest of `entry` as JSON. Clears the other fields of `entry`: a copy would take most of the time. */
export function restJson(entry: StoredTask, { created_at }: ShortHead): string {
  const rest = entry as Rest
  const error = entry.runtime?.error
  rest.runtime = error && ({ error } as Rest['runtime'])
  if (rest.result !== null) rest.run_status = undefined // see `restoreTask`
  if (rest.input === rest.params) rest.input = undefined
  if (rest.created_at === isoTime(created_at)) rest.created_at = undefined
  rest.id = undefined
  rest.depends_on = undefined
  rest.seq = undefined
  rest.execution_category = undefined
  rest.graph_id = undefined
  rest.graph_ordinal = undefined
  rest.trace_id = undefined
  rest.trace_state = undefined
  rest.graph = undefined
  rest.scope = undefined
  rest.updated_at = undefined
  rest.started_at = undefined
  rest.finished_at = undefined
  return JSON.stringify(rest)
}

interface LastRow {
  readonly rest: Rest
  readonly task: Task
}

/** Whether the rests of two rows are surely alike. Objects are compared by identity: cheap, and enough for constants. */
export const haveSameRest = (a: Task, b: Task): boolean =>
  a.ownOptions === b.ownOptions &&
  a.result === b.result &&
  a.params === b.params &&
  a.input === b.input &&
  a.status === b.status &&
  a.attempt === b.attempt &&
  a.type === b.type &&
  a.toolName === b.toolName &&
  a.removal === b.removal &&
  !a.hasColdFields &&
  !b.hasColdFields

/** Builds a graph from its short form, as `recoverGraph` builds it from its entries. */
export class ShortGraph {
  readonly graph: Graph
  /** The highest number of its changes. */
  lastSeq = 0
  /** The values of the last row, which may be in the graph before. */
  #last: LastRow | undefined

  constructor({ graph_ordinal, graph_id, trace_id, created_at, graph }: ShortHead, last: LastRow | undefined) {
    this.#last = last
    const options = graph === undefined ? NO_GRAPH_OPTIONS : (graphOptions(graph) ?? NO_GRAPH_OPTIONS)
    const identity = { id: graph_id, ordinal: graph_ordinal, traceId: trace_id, createdAt: created_at, options }
    this.graph = new Graph(identity, RELEASED_EDGES)
  }

  add(rows: readonly ShortRow[]): void {
    for (const row of rows) this.#add(row)
  }

  #add([id, seq, updated, sinceStarted, sinceAttemptStarted, sinceFinished, dependsOn, given]: ShortRow): void {
    const { graph } = this
    const updatedAt = graph.createdAt + updated
    const rest = given ?? this.#last!.rest
    rest.id = id
    rest.seq = seq
    rest.depends_on = dependsOn ?? undefined
    const options = given === undefined ? this.#last!.task.ownOptions : undefined
    const task = new Task(graph, graph.tasks.length, withStoredWhen(rest) as ValidTask, options)
    const time = (since: Ms) => (since === null ? undefined : updatedAt - since)
    restoreTask(task, rest as StoredTask, {
      createdAt: timeOf(rest.created_at) ?? graph.createdAt,
      updatedAt,
      startedAt: time(sinceStarted),
      attemptStartedAt: time(sinceAttemptStarted),
      finishedAt: time(sinceFinished),
    })
    if (rest.replaced) task.removal = 'replaced'
    graph.addRecovered(task)
    this.lastSeq = Math.max(this.lastSeq, seq)
    this.#last = { rest, task }
  }

  get last(): LastRow | undefined {
    return this.#last
  }

  /** The whole graph. Called after the last row. */
  ended(): Graph {
    this.graph.endedAt = endOf(this.graph) ?? Date.now()
    this.graph.releaseEdges()
    return this.graph
  }
}
