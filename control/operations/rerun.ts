/**
 * Runs an ended graph again as a new graph of the same tasks. Tasks that succeeded keep their outcomes. The other
 * tasks, and all tasks downstream of them, are executed.
 *
 * The new graph is submitted like any other. Its journal frame includes the reused outcomes, so a crash leaves all of
 * it or nothing. Both graphs share result files, so either of them can be removed first. Everything works in steps,
 * because a graph may have 100,000 tasks.
 */

import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { RerunRequest } from '../../shared/contract/rerun.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { didYouMean, quoted } from '../../shared/request/unknown-names.ts'
import { joinedBytes } from '../../shared/streams/joined-bytes.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import { refuseUnknownFields, refuseWrongForm } from '../json/request-fields.ts'
import { encodeStates, groupsOf } from '../log/journaled-state.ts'
import type { GraphOptions } from '../rules/graph-options.ts'
import type { Parameters } from '../rules/parameters.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Graph, Task } from '../task/graph.ts'
import { edgesByName } from '../task/graph-findings.ts'
import { reuseOutcome, taskInput, tasksToRun } from '../task/rerun.ts'
import type { EncodedGraph } from './graph-checks.ts'
import { idList } from './id-list.ts'
import { type CheckedGraph, type Reuse, takeInGraph, warningsMember } from './intake.ts'
import { knownGraph, NotFound } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import type { Submission } from './submit.ts'

/** What an idempotency key stands for if nothing is asked for, however that is written. */
const NO_BODY = new Uint8Array()

/**
 * Returns a `RerunResponse` as JSON once the new graph is on disk. `body` is a `RerunRequest`; an empty body stands for
 * the defaults. Throws 404, 400 for an unknown id, 409 if the graph has not ended or has nothing to run, and the errors
 * of `takeInGraph`.
 */
export async function rerun(
  parts: OperationParts,
  graphId: string,
  body: Uint8Array,
  { traceId, traceState, key = null, caller, by }: Submission,
): Promise<string> {
  const request = await runCooperatively(decodeRequest(parts, body))
  const sentBody = Object.keys(request).length === 0 ? NO_BODY : body
  return parts.keeper.keys.once({ scope: `rerun ${graphId}`, key, body: sentBody }, async (sent) => {
    const source = await runCooperatively(selected(parts, graphId, request))
    const reuse = new ReusedOutcomes(parts, source)
    try {
      const encoded = await runCooperatively(encodeTasks(source))
      const answerOf = (checked: CheckedGraph) => answer(checked, reuse.ids)
      const { tenant } = source.graph
      const origin = { traceId, traceState, sent, caller, by, tenant, reuse, answerOf }
      return (await takeInGraph(parts, encoded, origin)).answer
    } catch (error) {
      reuse.release()
      throw error
    }
  })
}

const answer = ({ graph, ids, warnings }: CheckedGraph, reused: string): string =>
  `{"accepted":${graph.tasks.length},"task_ids":${ids},"graph_id":"${graph.id}","reused":${reused}${warningsMember(warnings)}}`

const FIELDS = Object.keys(RerunRequest.properties)

/** Members that are decoded in steps. A body may have millions of parameter names. */
const ARRAYS = { from: true, params: {} } as const

function* decodeRequest({ unknownFields }: OperationParts, body: Uint8Array): Steps<RerunRequest> {
  const given = body.length === 0 ? {} : ((yield* decodeJson(body, ARRAYS)) ?? {})
  if (!isObject(given)) throw invalidJson(`expected object, got ${jsonTypeOf(given)}`)
  refuseWrongForm(given, RerunRequest)
  refuseUnknownFields(given, { names: FIELDS }, unknownFields)
  return withoutNulls(given) as RerunRequest
}

/** The graph to run again. */
interface Source {
  readonly graph: Graph
  /** The id of the new graph. */
  readonly options: GraphOptions
  /** The tasks that the new graph has too. */
  readonly tasks: readonly Task[]
  /** The tasks among `tasks` that keep their outcomes. */
  readonly reused: ReadonlySet<Task>
}

function* selected({ store }: OperationParts, graphId: string, { from, params }: RerunRequest): Steps<Source> {
  const graph = knownGraph(store, graphId)
  if (graph.endedAt === undefined) throw new ServiceError(409, `graph is still running: ${graphId}`)
  const options = withParameters(graph, params ?? {})
  const named = new Set<string>()
  for (const id of Array.isArray(from) ? from : []) {
    const task = store.taskIn(graph, id)
    if (task === undefined) throw badRequest(`graph ${graphId} has no task ${id}`)
    const parent = task.childOf?.parent.id
    if (parent !== undefined)
      throw badRequest(`task ${id} of graph ${graphId} runs again with ${parent} only: name ${parent}`)
    if (task.atEnd !== undefined)
      throw badRequest(`task ${id} of graph ${graphId} runs at the end of each run: do not name it`)
    named.add(id)
    if (isYieldDue(named.size)) yield
  }
  const all = graph.submitted
  const edges = graph.edges ?? (yield* edgesByName(all))
  const runs = yield* tasksToRun(all, edges, named)
  const tasks: Task[] = []
  const reused = new Set<Task>()
  /** Ids of dynamic tasks that run again, which add their tasks again, and of those tasks. */
  const again = new Set<string>()
  const leftOut = new Set<Task>()
  let steps = 0
  for (let i = 0; i < all.length; i++) {
    const task = all[i]!
    if (isYieldDue(steps++)) yield
    if (task.isDeleted || task.atEnd !== undefined) continue
    const isLeftOut = task.rare.added_by !== undefined && again.has(task.rare.added_by)
    if (isLeftOut) leftOut.add(task)
    if (isLeftOut || (runs[i] === 1 && task.options.dynamic === true)) again.add(task.id)
    if (isLeftOut) continue
    tasks.push(task)
    if (runs[i] === 0) reused.add(task)
    for (let d = edges.dependenciesStart[i]!; d < edges.dependenciesStart[i + 1]!; d++) {
      const dependency = all[edges.dependencies[d]!]!
      if (isYieldDue(steps++)) yield
      if (!dependency.isDeleted && !leftOut.has(dependency)) continue
      const why = dependency.isDeleted ? 'was deleted' : `is added again by ${dependency.rare.added_by}`
      const text = `task ${dependency.id} of graph ${graphId} ${why}, and task ${task.id} depends on it`
      throw new ServiceError(409, `${text}: submit the graph again`)
    }
  }
  if (reused.size === tasks.length) {
    throw new ServiceError(409, `nothing to run: all tasks of graph ${graphId} succeeded (name tasks in "from")`)
  }
  return { graph, options, tasks, reused }
}

/** The options of `graph` with new parameter values. Throws 400 for an unknown parameter. */
function withParameters({ id, options }: Graph, params: Parameters): GraphOptions {
  const names = Object.keys(options.params ?? {})
  for (const name of Object.keys(params)) {
    if (names.includes(name)) continue
    throw badRequest(`graph ${id} has no parameter ${quoted(name)}${didYouMean(nearestName(name, names))}`)
  }
  return options.params === undefined ? options : { ...options, params: { ...options.params, ...params } }
}

/** Tasks whose texts are encoded with one call. */
const TASKS_PER_PART = 64

/** A task that succeeded and runs again all the same must not take over its own earlier outcome, or another one as old. */
function inputOf(task: Task, isReused: boolean): TaskInput {
  const input = taskInput(task)
  const runsAgain = !isReused && task.status === 'success'
  return runsAgain && input.cache != null ? { ...input, cache: { ...input.cache, ttl_ms: 0 } } : input
}

/** The tasks and the graph fields of `source` as a submission. */
function* encodeTasks({ options, tasks, reused }: Source): Steps<EncodedGraph> {
  const fields = JSON.stringify(options).slice(1, -1)
  const inputs: TaskInput[] = []
  const parts = [Buffer.from(`{${fields}${fields && ','}"tasks":[`)]
  for (let from = 0; from < tasks.length; from += TASKS_PER_PART) {
    const some = tasks.slice(from, from + TASKS_PER_PART).map((task) => inputOf(task, reused.has(task)))
    inputs.push(...some)
    parts.push(Buffer.from((from === 0 ? '' : ',') + JSON.stringify(some).slice(1, -1)))
    yield
  }
  parts.push(Buffer.from(']}'))
  return { body: yield* joinedBytes(parts), graph: { ...options, tasks: inputs } }
}

class ReusedOutcomes implements Reuse {
  readonly #parts: OperationParts
  readonly #source: Source
  readonly #tasks: Task[] = []
  readonly #shared: ResultFile[] = []
  /** The ids of the tasks with reused outcomes, as a JSON array. */
  ids = '[]'

  constructor(parts: OperationParts, source: Source) {
    this.#parts = parts
    this.#source = source
  }

  *apply(graph: Graph): Steps<readonly (string | Uint8Array)[]> {
    const states: Uint8Array[] = []
    const at = Date.now()
    yield* inRanges(graph.tasks.length, (from, to) => {
      const some = graph.tasks
        .slice(from, to)
        .filter((task) => this.#source.reused.has(this.#source.tasks[task.position]!))
      for (const task of some) this.#reuse(task, this.#source.tasks[task.position]!, at)
      if (some.length === 0) return
      const rows = encodeStates(groupsOf(some)).slice(1, -1)
      states.push(Buffer.from(states.length === 0 ? rows : `,${rows}`))
    })
    this.ids = yield* idList(this.#tasks, ({ id }) => id)
    return states.length === 0 ? [] : ['[', ...states, ']']
  }

  #reuse(task: Task, source: Task, at: number): void {
    if (source.isDeleted || source.graph.isRetired) throw new NotFound('graph', source.graph.id) // it was deleted meanwhile
    if (source.result instanceof ResultFile) {
      this.#parts.keeper.results.share(source.result)
      this.#shared.push(source.result)
    }
    reuseOutcome(task, source, at)
    this.#tasks.push(task)
  }

  /** Called when the graph was refused. */
  release(): void {
    for (const file of this.#shared) this.#parts.keeper.results.drop(file)
  }

  accepted(): void | Promise<void> {
    return runCooperatively(this.#addEvents())
  }

  /** Adds an event for each reused outcome. It follows the acceptance of the graph, as if the task had ended then. */
  *#addEvents(): Steps<void> {
    const { store, keeper } = this.#parts
    for (let i = 0; i < this.#tasks.length; i++) {
      const task = this.#tasks[i]!
      if (!task.isDeleted) keeper.noteReused(task, store.nextSeq(), Date.now())
      if (isYieldDue(i)) yield
    }
  }
}
