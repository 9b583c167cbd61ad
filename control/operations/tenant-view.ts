/**
 * The parts of the service as a caller sees them. One with a tenant sees the graphs of its tenant, and all else is unknown to it.
 *
 * What a view does not name is not there: a new look-up of the store fails for tenants until somebody decides what they see.
 */
import { type Caller, callerOf } from '../../shared/http/callers.ts'
import type { Keeper, NamedGraph, OtherReplicas } from '../log/keeper.ts'
import { noOwner } from '../log/no-owner.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { OperationParts } from './parts.ts'
import { passed, withOwn } from './with-own.ts'

/** The parts as the caller of a request sees them. Routes get nothing else. */
export type PartsFor = (request: Request) => OperationParts

export function partsFor(parts: OperationParts): PartsFor {
  const isReplica = parts.keeper.replica !== undefined
  const passedOn = (request: Request) => (isReplica ? request.headers.get(TENANT_HEADER) : null) ?? undefined
  return (request) => viewOf(parts, callerOf(request)?.grant.tenant ?? passedOn(request))
}

export const partsOf = (parts: OperationParts, by: Caller | undefined): OperationParts =>
  viewOf(parts, by?.grant.tenant)

/** Views that are kept. They hold nothing of their own. */
const MAX_VIEWS = 1_000

const views = new WeakMap<OperationParts, Map<string, OperationParts>>()

/** The parts as `tenant` sees them; all of them without a tenant. */
export function viewOf(parts: OperationParts, tenant: string | undefined): OperationParts {
  if (tenant === undefined) return parts
  const known = views.get(parts) ?? new Map<string, OperationParts>()
  let view = known.get(tenant)
  if (view === undefined) {
    if (known.size === MAX_VIEWS) known.clear()
    const store = storeOf(parts.store, tenant)
    const eventStreams = parts.eventStreams.seenBy({ tenant, store })
    view = { ...parts, store, keeper: keeperOf(parts.keeper, tenant), eventStreams }
    views.set(parts, known.set(tenant, view))
  }
  return view
}

/** What says nothing of others, or is asked about what was looked up before. */
const PASSED: ReadonlySet<string | symbol> = new Set<keyof TaskStore>([
  ...(['seq', 'nextSeq', 'nextOrdinal', 'apply', 'claim', 'claimNow', 'unclaim', 'replaces', 'hiddenRunning'] as const),
  ...(['isBeingReplaced', 'whenEnded', 'whenAnyEnds', 'whenAnyAsked', 'whenChanged'] as const),
])

/** The graphs of `tenant`. Ids of its tasks belong to their graphs, so `graph_id/task_id` stands for an id of the service. */
export function storeOf(store: TaskStore, tenant: string): TaskStore {
  const isOwn = (graph: Graph) => graph.tenant === tenant
  const hasRecord = (task: Task) => isOwn(task.graph) && store.hasRecord(task)
  const graphOf = (id: string) => {
    const graph = store.graph(id)
    return graph !== undefined && isOwn(graph) ? graph : undefined
  }
  const ownGraphs = () => graphsOf(store, isOwn)
  const recordedTasks = (graphs: Iterable<Graph> = ownGraphs()) => store.recordedTasks(graphs)
  const own: Partial<Pick<TaskStore, keyof TaskStore>> = {
    areIdsOfGraphs: true,
    graph: graphOf,
    get(address) {
      const slash = address.indexOf('/')
      const graph = slash < 0 ? undefined : graphOf(address.slice(0, slash))
      return graph && store.taskIn(graph, address.slice(slash + 1))
    },
    get graphs() {
      return ownGraphs()
    },
    taskIn: (graph, id) => (isOwn(graph) ? store.taskIn(graph, id) : undefined),
    ...{ visibleTasks: recordedTasks, recordedTasks, isVisible: hasRecord, hasRecord },
    whyTaken: () => undefined,
    watch: (watcher) =>
      store.watch((change, ...more) => {
        if (isOwn('graph' in change ? change.graph : change.task.graph)) watcher(change, ...more)
      }),
  }
  return new Proxy(store, {
    get(_, name) {
      if (name in own) return own[name as keyof typeof own]
      if (!PASSED.has(name)) throw new Error(`nobody has decided what a tenant sees of ${String(name)}`)
      return passed(store, name)
    },
  })
}

function* graphsOf({ graphs }: TaskStore, isWanted: (graph: Graph) => boolean): Generator<Graph> {
  for (const graph of graphs) if (isWanted(graph)) yield graph
}

function keeperOf(keeper: Keeper, tenant: string): Keeper {
  const own: Partial<Keeper> = {
    keys: {
      once: (asked, ...rest) => keeper.keys.once({ ...asked, scope: `tenant ${tenant} ${asked.scope}` }, ...rest),
    },
    others: othersOf(keeper.others, tenant),
  }
  return withOwn(keeper, own)
}

/** In what a replica asks for a tenant, and in the answer. It only narrows what a caller without a tenant sees. */
export const TENANT_HEADER = 'x-taskmill-tenant'

/** Each request says whose it is. A replica of a version before tenants does not say so in its answer: it shows everything. */
export function othersOf(others: OtherReplicas, tenant: string): OtherReplicas {
  const ofGraph = (named: NamedGraph): NamedGraph => {
    const slash = 'taskId' in named ? named.taskId.indexOf('/') : -1
    return 'taskId' in named && slash > 0 ? { graphId: named.taskId.slice(0, slash) } : named
  }
  return withOwn(others, {
    isHere: (named) => others.isHere(ofGraph(named)),
    unreadable: async () => [], // the list is that of the operator
    removeUnreadable: (graphId) => others.removeUnreadable(graphId, tenant),
    async ownerOf(named) {
      const own = ofGraph(named)
      return 'graphId' in own ? await others.ownerOf(own, tenant) : undefined
    },
    async ask(replica, request) {
      const headers = new Headers(request.headers)
      headers.set(TENANT_HEADER, tenant)
      const answer = await others.ask(replica, { ...request, headers })
      if (answer.headers.get(TENANT_HEADER) === tenant) return answer
      void answer.body?.cancel().catch(() => {})
      throw noOwner(`replica ${replica.id} has an earlier version, which knows no tenants`)
    },
  })
}
