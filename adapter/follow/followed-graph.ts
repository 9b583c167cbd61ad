/**
 * The state of a followed graph: from its file, from the answer of GET /graphs/{id}, and from the events since then. Pure.
 */
import { APPROVAL_TYPE } from '../../shared/contract/approval.ts'
import type { TaskEventState } from '../../shared/contract/events.ts'
import type { GraphState } from '../../shared/contract/graph-state.ts'
import type { GraphCounts, GraphDetails } from '../../shared/contract/graphs.ts'
import { isMeantEnd } from '../../shared/contract/run-if.ts'
import { WAIT_TYPE } from '../../shared/contract/signal.ts'
import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import { isObject } from '../../shared/text/json.ts'
import {
  type GraphProgress,
  type ShownTask,
  type TaskProgress,
  type TaskState,
  taskProgress,
} from '../../shared/text/live-view/progress.ts'
import { type WaitingReason, waitingWords } from '../table/waiting.ts'
import { type Expectation, expectationOf } from './expectation.ts'

/** The data of `run` and `watch`. */
export interface FollowData {
  readonly graph_id: string
  readonly state: GraphState
  readonly tasks: readonly {
    readonly id: string
    readonly status: TaskStatus
    readonly error?: string
    readonly duration_ms: number
  }[]
}

interface Explained {
  readonly waiting?: WaitingReason | undefined
}

interface Described {
  readonly type: string
  readonly tool_name?: string | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly parent?: string | undefined
}

interface FollowedTask {
  readonly shown: ShownTask
  /** Whether it may write output, by its type. */
  readonly writes: boolean
  readonly dependsOn: readonly string[]
  readonly continuesOnError: boolean
  /** For a child: the id of its task with `for_each`. */
  readonly parent: string | undefined
  state: TaskState & Explained
  /** The newest message that it reported. */
  message: string
  progress: TaskProgress
}

export class FollowedGraph {
  readonly graphId: string
  /** From the file of the graph. The service tells them too, but only those of the first 10,000 tasks. */
  readonly #expectations: ReadonlyMap<string, Expectation>
  readonly #tasks = new Map<string, FollowedTask>()
  /** For each group and each task with `for_each` that has started, its children: how many have ended, and how many there are. */
  readonly #children = new Map<string, { ended: number; readonly total: number }>()
  #state: GraphState = 'running'
  #acceptedAt: number
  /** Undefined after a change, as `#asking`. */
  #shown: TaskProgress[] | undefined
  #asking: readonly string[] | undefined
  readonly #onProgress: (task: TaskProgress) => void

  /** `onProgress` hears of each change of a task that has started and may write output. */
  constructor(
    graphId: string,
    expectations: ReadonlyMap<string, Expectation>,
    now: number,
    onProgress: (task: TaskProgress) => void = () => {},
  ) {
    this.graphId = graphId
    this.#expectations = expectations
    this.#acceptedAt = now
    this.#onProgress = onProgress
  }

  get hasEnded(): boolean {
    return this.#state !== 'running'
  }

  /** Applies the answer of GET /graphs/{id}. */
  look(details: GraphDetails): void {
    this.#state = details.state
    this.#acceptedAt = Date.parse(details.created_at)
    // The answer may lack some of the children.
    for (const { id, child_count: total, children = {} } of details.tasks)
      if (total !== undefined) this.#children.set(id, { ended: endedIn(children), total })
    for (const task of details.tasks) this.#set(task.id, task, task, task)
  }

  /** Applies an event of the graph. Unknown kinds change nothing. */
  apply(kind: string, data: object): void {
    if (kind === 'task_changed') this.#change(data as TaskEventState)
    else if (kind === 'task_waiting') this.#explain(data as { task_id: string } & Explained)
    else if (kind === 'graph_ended') this.#state = (data as { state: GraphState }).state
    else if (kind === 'task_deleted') this.#delete((data as { task_id: string }).task_id)
    else if (kind === 'reset') this.#reset(data as { graph?: Partial<GraphDetails>; tasks?: TaskEventState[] })
  }

  #reset({ graph = {}, tasks = [] }: { graph?: Partial<GraphDetails>; tasks?: readonly TaskEventState[] }): void {
    for (const task of tasks) this.#change(task)
    if (graph.state !== undefined) this.#state = graph.state
  }

  #change(task: TaskEventState): void {
    const { task_id: id, child_count: total, parent } = task
    if (total !== undefined && this.#children.get(id)?.total !== total) this.#children.set(id, { ended: 0, total })
    const hadEnded = isTerminal(this.#tasks.get(id)?.state.status ?? 'pending')
    this.#set(id, task as TaskEventState & TaskState, task)
    const siblings = parent === undefined ? undefined : this.#children.get(parent)
    if (siblings !== undefined && !hadEnded && isTerminal(task.status)) siblings.ended++
    const message = isObject(task.progress) ? task.progress.message : undefined
    if (typeof message === 'string') this.#tasks.get(task.task_id)!.message = message
  }

  #explain({ task_id, waiting }: { readonly task_id: string } & Explained): void {
    const task = this.#tasks.get(task_id)
    if (task !== undefined) this.#set(task_id, { ...task.state, waiting }, { type: '', parent: task.parent })
  }

  #delete(id: string): void {
    this.#tasks.delete(id)
    this.#shown = undefined
    this.#asking = undefined
  }

  #set(
    id: string,
    state: FollowedTask['state'],
    { type, tool_name, parent, annotations = {} }: Described,
    fixed: Pick<GraphDetails['tasks'][number], 'depends_on' | 'continue_on_error'> = {},
  ): void {
    const known = this.#tasks.get(id)
    const dependsOn = fixed.depends_on ?? known?.dependsOn ?? []
    const continuesOnError = fixed.continue_on_error ?? known?.continuesOnError ?? this.#tolerates(parent)
    const title = tool_name === undefined ? type : `${type}.${tool_name}`
    const expectation = parent === undefined ? (this.#expectations.get(id) ?? expectationOf(annotations)) : {}
    const shown = known?.shown ?? { id, title, ...expectation }
    const writes = known?.writes ?? writesOutput(type, tool_name)
    const task: FollowedTask = {
      shown,
      writes,
      dependsOn,
      continuesOnError,
      parent,
      state,
      message: known?.message ?? '',
      progress: NOT_SHOWN,
    }
    const detailOf = () => this.#detailOf(task)
    const childrenOf = () => this.#children.get(id)
    task.progress = {
      ...taskProgress(shown, { ...state, continue_on_error: continuesOnError }, this.#acceptedAt),
      ...(parent !== undefined && { parent }),
      get children() {
        return childrenOf()
      },
      // A getter: only tasks on the screen need the text, and it changes when dependencies end.
      get detail() {
        return detailOf()
      },
    }
    this.#tasks.set(id, task)
    this.#shown = undefined
    this.#asking = undefined
    // A task with children writes nothing itself.
    if (writes && task.progress.startMs !== undefined && !this.#children.has(id)) this.#onProgress(task.progress)
  }

  /** Whether the failure of a child of this task is no alarm: the task may fail, or is meant to. */
  #tolerates(parent: string | undefined): boolean {
    const task = parent === undefined ? undefined : this.#tasks.get(parent)
    return task !== undefined && (task.continuesOnError || task.shown.expect === 'failed')
  }

  /** Why it waits, or what it reports while it runs. */
  #detailOf({ state, dependsOn, message }: FollowedTask): string {
    const said = waitingWords(state.waiting)
    if (state.status !== 'pending') return said || message
    const awaited = dependsOn.filter((id) => !isTerminal(this.#tasks.get(id)?.state.status ?? 'pending'))
    if (awaited.length > 0) return waitingWords({ reason: 'dependencies', tasks: awaited })
    return state.waiting?.reason === 'dependencies' ? '' : said // they have ended since
  }

  /** The ids of the tasks that wait for an approval, in the order of the graph. */
  get asking(): readonly string[] {
    this.#asking ??= [...this.#tasks.values()].flatMap(({ progress: { phase, id } }) => (phase === 'asking' ? id : []))
    return this.#asking
  }

  progress(now: number, notice: string): GraphProgress {
    this.#shown ??= this.#ordered().map(({ progress }) => progress)
    return { tasks: this.#shown, nowMs: now - this.#acceptedAt, notice }
  }

  /** The tasks in the order of the graph, each followed by its children. */
  #ordered(): FollowedTask[] {
    if (this.#children.size === 0) return [...this.#tasks.values()]
    const children = Map.groupBy(this.#tasks.values(), ({ parent }) => parent)
    const first = [...this.#tasks.values()].filter(({ parent }) => parent === undefined || !this.#tasks.has(parent))
    // Without a list, and for one element, the children of a group keep their order.
    const indexOf = ({ shown, parent = '' }: FollowedTask) =>
      Number(/^\[(\d+)\]/.exec(shown.id.slice(parent.length))?.[1] ?? 0)
    return first.flatMap((task) => {
      const own = this.#children.has(task.shown.id) ? (children.get(task.shown.id) ?? []) : []
      return [task, ...own.toSorted((a, b) => indexOf(a) - indexOf(b))]
    })
  }

  data(): FollowData {
    const tasks = this.#ordered().map(({ shown: { id }, state, progress }) => {
      const { error } = state
      const { startMs, endMs } = progress
      const duration_ms = startMs === undefined || endMs === undefined ? 0 : endMs - startMs
      return { id, status: state.status, ...(error !== undefined && { error }), duration_ms }
    })
    return { graph_id: this.graphId, state: this.#state, tasks }
  }

  /**
   * Whether the graph has ended, and every task as intended: in success, within the rules of the graph, or as its annotation
   * expects (failed, or skipped because of such a failure).
   */
  get wentAsMeant(): boolean {
    if (this.#state === 'success') return true // of a task beyond the answer only the service knows what its graph tolerates
    const meantLosses = new Set<string>()
    const meantSkips = new Set<string>()
    // Each task comes after those that it depends on.
    for (const [id, { shown, state, dependsOn, continuesOnError, parent }] of this.#tasks) {
      if (parent !== undefined) continue // it counts for its parent alone
      if (state.status === 'success' || (state.status === 'failed' && continuesOnError)) continue
      const isForNothing = dependsOn.length > 0 && dependsOn.every((dependency) => meantSkips.has(dependency))
      if (state.status === 'skipped' && (isForNothing || isMeantEnd(state))) {
        meantSkips.add(id)
        continue
      }
      const isMeant =
        state.status === 'skipped'
          ? shown.expect === 'skipped' || dependsOn.some((dependency) => meantLosses.has(dependency))
          : state.status === 'failed' && shown.expect === 'failed'
      if (!isMeant) return false
      meantLosses.add(id)
    }
    return this.hasEnded
  }
}

/** Whether a task of this type may write output while it runs. Of the built-in tools only the shell does. */
const writesOutput = (type: string, toolName: string | undefined): boolean =>
  type === 'os' ? toolName === 'shell' : type !== APPROVAL_TYPE && type !== WAIT_TYPE

/** How many tasks have ended. */
const endedIn = (counts: GraphCounts): number =>
  Object.entries(counts).reduce((sum, [status, count]) => sum + (isTerminal(status as TaskStatus) ? count : 0), 0)

/** A placeholder until the first state of the task arrives. */
const NOT_SHOWN: TaskProgress = { id: '', title: '', phase: 'waiting', attempt: 0, reason: '', isSurprise: false }
