/**
 * Submits a graph of tasks. If a graph is repeated with the same idempotency key, it gets the first answer.
 *
 * The answer comes once `intake.ts` has checked the graph and has it on disk, as `log/journaled-graph.ts` writes it.
 */
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import type { Caller } from '../../shared/http/callers.ts'
import type { RequestTrace } from '../../shared/logs/trace.ts'
import { inRanges, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { GraphInput } from './graph-checks.ts'
import { type AcceptedGraph, type CheckedGraph, takeInGraph, warningsMember } from './intake.ts'
import type { OperationParts } from './parts.ts'
import { allEnded } from './wait.ts'

/** The body of a request, or the graph as a value. */
export type SubmittedGraph = { readonly body: Uint8Array } | { readonly graph: GraphInput }

export interface Submission extends RequestTrace {
  /** The idempotency key of the caller. */
  readonly key?: string | null | undefined
  readonly caller?: { readonly signal: AbortSignal }
  readonly by?: Caller | undefined
}

/** The answer to a submission. */
export class Submitted {
  readonly #store: TaskStore
  /** Undefined if the answer is that of an earlier submission. */
  readonly #accepted: AcceptedGraph | undefined

  /** `json` is a `SubmitResponse`. */
  constructor(
    store: TaskStore,
    readonly json: string,
    accepted: AcceptedGraph | undefined,
  ) {
    this.#store = store
    this.#accepted = accepted
  }

  response(): SubmitResponse {
    if (this.#accepted === undefined) return JSON.parse(this.json)
    const { graph, warnings } = this.#accepted
    return {
      accepted: graph.submittedCount,
      task_ids: graph.submitted.map(({ id }) => id),
      graph_id: graph.id,
      ...(warnings.length > 0 && { warnings }),
    }
  }

  /** The id of the graph of an earlier submission that callers do not see here. */
  get elsewhere(): string | undefined {
    if (this.#accepted !== undefined) return undefined
    const { graph_id } = this.response()
    return this.#store.graph(graph_id) === undefined ? graph_id : undefined
  }

  /** The tasks of the graph. For an earlier submission, the tasks that callers still see. */
  tasks(): readonly Task[] {
    if (this.#accepted !== undefined) return this.#accepted.graph.submitted
    const { graph_id, task_ids } = this.response()
    const graph = this.#store.graph(graph_id)
    return graph === undefined ? [] : task_ids.flatMap((id) => this.#store.taskIn(graph, id) ?? [])
  }
}

/** Resolves once the graph is on disk. Throws as `takeInGraph`, and 422 if the key was sent with another graph. */
export async function submit(
  parts: OperationParts,
  submitted: SubmittedGraph,
  { traceId, traceState, key = null, caller, by }: Submission,
): Promise<Submitted> {
  const encoded = 'body' in submitted ? submitted : { ...submitted, body: encode(submitted.graph) }
  let accepted: AcceptedGraph | undefined
  const json = await parts.keeper.keys.once({ scope: 'tasks', key, body: encoded.body }, async (sent) => {
    accepted = await takeInGraph(parts, encoded, { traceId, traceState, sent, caller, by, answerOf })
    return accepted.answer
  })
  return new Submitted(parts.store, json, accepted)
}

const encode = (graph: GraphInput): Uint8Array => new TextEncoder().encode(JSON.stringify(graph))

const answerOf = ({ graph, ids, warnings }: CheckedGraph): string =>
  `{"accepted":${graph.tasks.length},"task_ids":${ids},"graph_id":"${graph.id}"${warningsMember(warnings)}}`

/** Waits until the tasks have ended or `until` fires, and adds their states to the answer to the submission. */
export async function answerAfterWait(
  { store, keeper, stopping }: OperationParts,
  submitted: Submitted,
  until: AbortSignal,
): Promise<string> {
  const tasks = submitted.tasks()
  await allEnded(store, tasks, AbortSignal.any([until, stopping]))
  const states = await runCooperatively(statesOf(tasks))
  await keeper.kept('show')
  return `${submitted.json.slice(0, -1)},${states}}`
}

/** Works in steps, because a graph may have a million tasks. */
function* statesOf(tasks: readonly Task[]): Steps<string> {
  let states = ''
  let allTerminal = true
  yield* inRanges(tasks.length, (from, to) => {
    const some = tasks.slice(from, to).map(({ id, status }) => ({ id, status }))
    states += (from === 0 ? '' : ',') + JSON.stringify(some).slice(1, -1)
    for (let i = from; i < to; i++) allTerminal &&= tasks[i]!.isTerminal
  })
  return `"tasks":[${states}],"all_terminal":${allTerminal}`
}
