/**
 * The list of graphs in the page: the answer of `GET /graphs`, and every event since.
 *
 * An event tells the new status of a task, not its old one. For graphs that were accepted since, the list remembers the
 * status of each task that has changed, and whether it waits for an approval or its next attempt. For others it takes the
 * status that a task most often comes from; the end of the graph brings its exact counts.
 */
import { moved, runningAgain, waited } from './counts.ts'
import { withPatch } from './patch.ts'
import { withPause } from './pause.ts'
import type { Counts, GraphState, GraphSummary, GraphTask, StreamEvent, Waiting, WaitingCounts } from './wire.ts'

export interface GraphList {
  /** Newest first. */
  readonly graphs: readonly GraphSummary[]
  /** Cursor of the next page of older graphs. */
  readonly nextCursor: string | undefined
  /** The last known state of tasks of graphs that run: by graph, then by task. */
  readonly statuses: ReadonlyMap<string, Map<string, Known>>
  /** Number of the last event seen. Not a number while the events are those of several replicas: each has numbers of its own. */
  readonly seq: number
  /** A stream of events continues after it. */
  readonly position: string
  readonly isBehind: boolean
}

interface Known {
  readonly status: GraphTask['status']
  readonly wait: keyof WaitingCounts | undefined
}

/** Maximum graphs in the page. The oldest are dropped when events add more. */
export const MAX_LISTED_GRAPHS = 2_000

export const listOf = (
  graphs: readonly GraphSummary[],
  nextCursor: string | undefined,
  position: string,
): GraphList => ({
  ...{ graphs, nextCursor, position, seq: Number(position) },
  statuses: new Map(),
  isBehind: false,
})

/** The list with an older page below it. */
export const withOlder = (list: GraphList, graphs: readonly GraphSummary[], cursor: string | undefined): GraphList => {
  const known = new Set(list.graphs.map(({ graph_id }) => graph_id))
  return {
    ...list,
    graphs: [...list.graphs, ...graphs.filter(({ graph_id }) => !known.has(graph_id))],
    nextCursor: cursor,
  }
}

export function listAfterEvents(list: GraphList, events: readonly StreamEvent[]): GraphList {
  let { seq, position, isBehind } = list
  const byId = new Map(list.graphs.map((graph) => [graph.graph_id, graph]))
  const statuses: Map<string, Map<string, Known>> = new Map(list.statuses)
  let added: GraphSummary[] = []
  for (const event of events) {
    const after = event.id ?? String(event.seq)
    if (event.kind === 'reset') {
      const graphs = (event.graphs ?? []) as GraphSummary[]
      byId.clear()
      for (const graph of graphs) byId.set(graph.graph_id, graph)
      statuses.clear()
      added = []
      seq = Number(after)
      position = after
      isBehind = false
      continue
    }
    if (event.previous !== undefined && event.previous > seq) isBehind = true
    if (event.seq <= seq) continue
    seq = Number(after)
    position = after
    const { graph_id } = event
    const graph = byId.get(graph_id)
    if (event.kind === 'graph_accepted' && graph === undefined) {
      const accepted = acceptedGraph(event)
      byId.set(graph_id, accepted)
      added.push(accepted)
    } else if (Object.hasOwn(AFTER, event.kind) && graph !== undefined) {
      const before = statuses.get(graph_id)
      const known = before === undefined || before === list.statuses.get(graph_id) ? new Map(before) : before
      statuses.set(graph_id, known)
      byId.set(graph_id, AFTER[event.kind as keyof typeof AFTER](graph, event, known))
      if (event.kind === 'graph_changed' && event.truncated === true) isBehind = true // how many tasks it has now is not told
    } else if ((event.kind === 'graph_paused' || event.kind === 'graph_resumed') && graph !== undefined) {
      byId.set(graph_id, withPause(graph, event))
    } else if (event.kind === 'graph_ended' && graph !== undefined) {
      byId.set(graph_id, withPause(endedGraph(graph, event), event))
      statuses.delete(graph_id)
    } else if (event.kind === 'graph_removed') {
      byId.delete(graph_id)
      statuses.delete(graph_id)
    }
  }
  const isNew = new Set(added.map(({ graph_id }) => graph_id))
  const newest = added.toReversed().flatMap(({ graph_id }) => byId.get(graph_id) ?? [])
  const older = [...byId.values()].filter(({ graph_id }) => !isNew.has(graph_id))
  const all = [...newest, ...older]
  for (const { graph_id } of all.splice(MAX_LISTED_GRAPHS)) statuses.delete(graph_id)
  return { ...list, graphs: all, statuses, seq, position, isBehind }
}

const acceptedGraph = (event: StreamEvent): GraphSummary => {
  const { graph_id, at, name, labels, scope, tenant, task_count } = event
  return {
    graph_id,
    ...(name != null && { name: String(name) }),
    ...(labels != null && { labels: labels as Record<string, string> }),
    ...(scope === 'graph' && { scope }),
    ...(tenant != null && { tenant: String(tenant) }),
    state: 'running',
    task_count: Number(task_count),
    counts: { pending: Number(task_count) },
    created_at: at,
  }
}

function afterTask(graph: GraphSummary, event: StreamEvent, statuses: Map<string, Known>): GraphSummary {
  if (graph.state !== 'running') return graph
  const id = String(event.task_id)
  const to = event.status as GraphTask['status']
  const before = statuses.get(id)
  const wait = waitOf(event)
  statuses.set(id, { status: to, wait })
  const waitBefore = before === undefined ? likelyWait(event, graph.waiting) : before.wait
  const from = before?.status ?? (waitBefore === 'approval' ? 'pending' : likelyBefore(to, graph.counts))
  let { waiting } = graph
  if (wait !== waitBefore && waitBefore !== undefined) waiting = waited(waiting, waitBefore, -1)
  if (wait !== waitBefore && wait !== undefined) waiting = waited(waiting, wait, 1)
  const started_at = graph.started_at ?? (event.started_at as string | undefined)
  return { ...graph, counts: moved(graph.counts, from, to), waiting, ...(started_at != null && { started_at }) }
}

/**
 * The tasks that the event names have failed or were cancelled. Of those that run again with them, a graph that had ended has
 * skipped most. In a graph that runs they may be pending, and their own events tell the others.
 */
function afterRetry(graph: GraphSummary, event: StreamEvent, statuses: Map<string, Known>): GraphSummary {
  const retried = event.retried as readonly string[]
  let { counts } = graph
  for (const id of retried) {
    const likely = (counts.failed ?? 0) > 0 ? 'failed' : 'cancelled'
    counts = moved(counts, statuses.get(id)?.status ?? likely, 'pending')
    statuses.set(id, { status: 'pending', wait: undefined })
  }
  let others = graph.state === 'running' ? 0 : Number(event.tasks) - retried.length
  for (const from of ['skipped', 'success', 'failed', 'cancelled'] as const) {
    const some = Math.min(others, counts[from] ?? 0)
    counts = moved(counts, from, 'pending', some)
    others -= some
  }
  return runningAgain({ ...graph, counts })
}

/** The tasks that a patch adds are pending, as those were that it takes away. */
function afterPatch(graph: GraphSummary, event: StreamEvent, statuses: Map<string, Known>): GraphSummary {
  const { added, removed, replaced } = event as unknown as Readonly<Record<'added' | 'removed' | 'replaced', string[]>>
  let { waiting } = graph
  for (const id of [...removed, ...replaced]) {
    const wait = statuses.get(id)?.wait
    if (wait !== undefined) waiting = waited(waiting, wait, -1)
    statuses.delete(id)
  }
  const more = added.length - removed.length
  const { pending = 0, ...others } = graph.counts
  const counts = pending + more > 0 ? { ...others, pending: pending + more } : others
  return { ...withPatch(graph, event), task_count: graph.task_count + more, counts, waiting }
}

/** The events that change counts. */
const AFTER = { task_changed: afterTask, tasks_retried: afterRetry, graph_changed: afterPatch }

const waitOf = ({ waiting }: StreamEvent): keyof WaitingCounts | undefined => {
  const reason = (waiting as Waiting | undefined)?.reason
  return reason === 'approval' || reason === 'backoff' ? reason : undefined
}

/** What a task most likely waited for before an event that ends the wait. */
function likelyWait(event: StreamEvent, waiting: WaitingCounts = {}): keyof WaitingCounts | undefined {
  if (waitOf(event) !== undefined) return undefined
  if (event.type === 'approval' && (waiting.approval ?? 0) > 0) return 'approval'
  return Number(event.attempt ?? 0) > 1 && (waiting.backoff ?? 0) > 0 ? 'backoff' : undefined
}

/** The status that a task most likely had before `to`, among those with a count. */
function likelyBefore(to: GraphTask['status'], counts: Counts): GraphTask['status'] {
  const isThere = (status: GraphTask['status']) => (counts[status] ?? 0) > 0
  if (to === 'running' || to === 'skipped' || to === 'pending') return isThere('pending') ? 'pending' : to
  const before = (['cancelling', 'running', 'pending'] as const).filter((status) => status !== to)
  const order = to === 'cancelled' ? before : before.filter((status) => status !== 'cancelling')
  return order.find(isThere) ?? to
}

function endedGraph(graph: GraphSummary, event: StreamEvent): GraphSummary {
  const started = graph.started_at ?? graph.created_at
  return {
    ...graph,
    state: event.state as GraphState,
    counts: (event.counts ?? graph.counts) as Counts,
    waiting: undefined,
    finished_at: event.at,
    duration_ms: Math.max(0, Date.parse(event.at) - Date.parse(started)),
  }
}
