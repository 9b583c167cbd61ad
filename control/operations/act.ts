/**
 * Executes an action of an agent: translates it to a graph and submits that like any other graph.
 *
 * The journal contains the graph, never the action, so recovery does not depend on adapters. All of this works in
 * steps, because an action may be a graph of 100,000 tasks.
 */
import type { ActionKind, AgentActionRequest } from '../../shared/contract/adapter-v1.ts'
import { ServiceError } from '../../shared/contract/errors.ts'
import type { SubmitWarning, TaskInput } from '../../shared/contract/submission.ts'
import type { Caller } from '../../shared/http/callers.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { checkRequest, decodeRequest, invalidAction } from '../adapter-v1/request.ts'
import { type Translation, translate } from '../adapter-v1/translate.ts'
import { reviewFanOuts } from '../rules/fan-out-review.ts'
import { reviewGroups } from '../rules/group-review.ts'
import { reportHiddenValues, shownTask } from '../rules/hidden-env.ts'
import { reviewPlaceholders } from '../rules/placeholder-review.ts'
import { refuse } from '../rules/report.ts'
import { validateGraph } from '../rules/validate.ts'
import type { Graph, Task } from '../task/graph.ts'
import { actionInputs } from './action-inputs.ts'
import type { EncodedGraph } from './graph-checks.ts'
import { type CheckedGraph, type Origin, takeInGraph, warningsMember } from './intake.ts'
import type { OperationParts } from './parts.ts'
import { reviewedTask, reviewGraph, withKnownInputs } from './review.ts'

/** Task types that actions translate to. A translation may use them even if this service does not execute them. */
const ACTION_TYPES = ['os', 'runtime', 'mcp', 'cli-skills']

/** The body of a request, or the request as a value. */
export type SubmittedAction = { readonly body: Uint8Array } | { readonly request: AgentActionRequest }

export interface Acted {
  /** An `ActionResponse` as JSON. */
  readonly json: string
  readonly kind: ActionKind
  readonly tasks: readonly Task[]
  readonly warnings: readonly SubmitWarning[]
}

/** Resolves once the graph is on disk. Throws `ServiceError` as `takeInGraph` does. */
export async function act(
  parts: OperationParts,
  action: SubmittedAction,
  origin: Omit<Origin, 'reuse' | 'answerOf'>,
): Promise<Acted> {
  const { encoded, translated, answer } = await runCooperatively(readAction(parts, action))
  const answerOf = ({ graph, warnings }: CheckedGraph) => answer(graph.submittedCount, warnings, graph)
  try {
    const { graph, warnings, answer: json } = await takeInGraph(parts, encoded, { ...origin, answerOf })
    return { json, kind: translated.trace.normalized_kind, tasks: graph.submitted, warnings }
  } catch (error) {
    throw asActionFault(error)
  }
}

/** As `act`, but a repeated body with the same key gets the first answer. Returns an `ActionResponse` as JSON. */
export const actOnce = (
  parts: OperationParts,
  body: Uint8Array,
  { key, ...origin }: Omit<Origin, 'reuse' | 'answerOf' | 'sent'> & { readonly key: string | null },
): Promise<string> =>
  parts.keeper.keys.once(
    { scope: 'actions', key, body },
    async (sent) => (await act(parts, { body }, { ...origin, sent })).json,
  )

/** Translates and checks an action without accepting it. Returns an `ActionResponse` as JSON. Throws `ServiceError`. */
export async function translateAction(
  parts: OperationParts,
  body: Uint8Array,
  by: Caller | undefined,
): Promise<string> {
  return runCooperatively(translation(parts, { body }, by))
}

function* translation(parts: OperationParts, action: SubmittedAction, by: Caller | undefined): Steps<string> {
  const { translated, answer } = yield* readAction(parts, action)
  return answer(0, yield* checkTranslation(parts, translated, by))
}

interface ReadAction {
  /** The graph of the action, as the journal stores it. */
  readonly encoded: EncodedGraph
  readonly translated: Translation
  /** Ids of a tenant's tasks belong to `graph`, so the answer names them with it. */
  answer(accepted: number, warnings: readonly SubmitWarning[], graph?: Pick<Graph, 'id' | 'tenant'>): string
}

/** In a JSON array of strings: a quotation mark inside of one has a backslash before it. */
const BEGIN_OF_ID = /(^\[|",)"/g

/** The action as an unchecked graph. */
function* readAction({ unknownFields, maxBodyBytes }: OperationParts, action: SubmittedAction): Steps<ReadAction> {
  const request =
    'body' in action ? yield* decodeRequest(action.body, unknownFields) : checkRequest(action.request, unknownFields)
  const newTaskId = `adapter-${crypto.randomUUID()}`
  const translated = yield* translate(request, { newTaskId, inputs: actionInputs, unknownFields })
  const { text, ids, ...encoded } = yield* encodeGraph(translated, maxBodyBytes)
  const trace = JSON.stringify(translated.trace).slice(0, -1)
  return {
    encoded,
    translated,
    answer(accepted, warnings, graph) {
      const named = graph?.tenant === undefined ? ids : ids.replaceAll(BEGIN_OF_ID, `$1"${graph.id}/`)
      return `{"accepted":${accepted},"task_ids":${named},"task_graph":${text}${warningsMember(warnings)},"translation_trace":${trace},"task_ids":${named}}}`
    },
  }
}

/** Makes the checks of a submission without submitting the graph. Returns the warnings. */
function* checkTranslation(
  parts: OperationParts,
  { tasks, trace, options }: Translation,
  by: Caller | undefined,
): Steps<readonly SubmitWarning[]> {
  const types = new Set([...parts.executors.types, ...ACTION_TYPES])
  // The caller may add the single task to a graph that has its dependencies.
  const checked =
    trace.normalized_kind === 'task_graph.submit'
      ? tasks
      : tasks.map((task) => ({ ...task, depends_on: task.depends_on?.filter((id) => id === task.id) ?? [] }))
  try {
    const { tasks: valid, edges } = yield* validateGraph(checked, types)
    const whole = yield* reviewGroups({ tasks: valid, edges }, types, refuse)
    const inputs = whole.tasks
    yield* inRanges(inputs.length, (from, to) => reportHiddenValues(inputs, refuse, from, to))
    const fanOuts = yield* reviewFanOuts(valid, options.params, refuse)
    const known = yield* reviewPlaceholders(whole, options, fanOuts, refuse)
    const sent = inputs.map(reviewedTask)
    parts.quotas.ensureOfTenant(sent, by)
    const reviewed = withKnownInputs(sent, inputs, known)
    return yield* reviewGraph(parts, { fields: {}, inputs }, reviewed, refuse, { tenant: by?.grant.tenant })
  } catch (error) {
    throw asActionFault(error)
  }
}

/** Turns an error of POST /tasks about the graph into an error about its action. */
const asActionFault = (error: unknown): unknown =>
  error instanceof ServiceError && error.status === 400 ? invalidAction(error.message) : error

/** Tasks whose texts are encoded with one call. */
const TASKS_PER_PART = 64

interface EncodedTranslation extends Required<EncodedGraph> {
  /** The graph as callers may see it. */
  readonly text: string
  /** The ids of its tasks as a JSON array. */
  readonly ids: string
}

/** Throws 413 for a graph of more than `maxBytes`. */
function* encodeGraph({ tasks, options, annotate }: Translation, maxBytes: number): Steps<EncodedTranslation> {
  const annotated: TaskInput[] = []
  const parts: Uint8Array[] = []
  let size = 0
  const fields = JSON.stringify(options).slice(1, -1)
  let text = `{${fields}${fields && ','}"tasks":[`
  let ids = ''
  let pending = text
  const flush = () => {
    const part = new TextEncoder().encode(pending)
    parts.push(part)
    size += part.length
    pending = ''
  }
  for (let i = 0; i < tasks.length; i++) {
    const separator = i === 0 ? '' : ','
    const task = annotate(tasks[i]!)
    annotated.push(task)
    const json = JSON.stringify(task)
    const shown = shownTask(task)
    pending += separator + json
    text += separator + (shown === task ? json : JSON.stringify(shown))
    ids += separator + JSON.stringify(task.id ?? '')
    // A character has at least one byte, so the count is never too high.
    if (size + pending.length > maxBytes) throw tooLarge(maxBytes)
    if (i % TASKS_PER_PART === TASKS_PER_PART - 1) flush()
    if (isYieldDue(i)) yield
  }
  pending += ']}'
  text += ']}'
  flush()
  if (size > maxBytes) throw tooLarge(maxBytes)
  return {
    text,
    ids: `[${ids}]`,
    body: new Uint8Array(Buffer.concat(parts, size)),
    graph: { ...options, tasks: annotated },
  }
}

const tooLarge = (maxBytes: number) =>
  new ServiceError(
    413,
    `the translated graph is larger than ${maxBytes} bytes (the limit is --max-body-bytes; ids and metadata of an action count for each of its tasks)`,
  )
