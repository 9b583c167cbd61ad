/**
 * Takes in an action of an agent: translates it to a graph, which then goes the way of every graph.
 *
 * The journal holds the text of the graph, never the action, so a restart knows nothing of adapters. All of this is in
 * slices, as an action may be a graph of 100,000 tasks.
 */
import { ServiceError } from '../../shared/errors.ts'
import { inSlices, isYieldDue, type Slices } from '../../shared/slices.ts'
import { decodeRequest, invalidAction } from '../adapter-v1/request.ts'
import { type Translation, translate } from '../adapter-v1/translate.ts'
import { actionInputs } from '../executors/action-inputs.ts'
import { validateGraph } from '../graph/validate.ts'
import type { SentKey } from '../store/idempotency.ts'
import { type Intake, submitGraph } from './submit.ts'

/** Types that actions become. A translation may name them whether or not this service can run them. */
const ACTION_TYPES = ['os', 'runtime', 'mcp', 'cli-skills']

export interface ActionCall {
  readonly body: Uint8Array
  /** Bytes that the translated graph may have. It repeats annotations for each task, so it can outgrow the action. */
  readonly maxGraphBytes: number
}

/** An `ActionResponse` as JSON. Nothing is stored. Throws `ServiceError`. */
export async function translateAction(intake: Intake, call: ActionCall): Promise<string> {
  const types = new Set([...intake.executors.types, ...ACTION_TYPES])
  return (await inSlices(readAction(call, types))).answer(0)
}

/** Resolves with an `ActionResponse` as JSON once the graph is on disk. Throws `ServiceError` as `submitGraph` does. */
export async function submitAction(intake: Intake, call: ActionCall, traceId: string, sent?: SentKey): Promise<string> {
  const { graph, answer, taskCount } = await inSlices(readAction(call))
  const text = answer(taskCount)
  try {
    await submitGraph(intake, graph, traceId, sent && { ...sent, answer: text })
  } catch (error) {
    throw asActionFault(error)
  }
  return text
}

interface ReadAction {
  /** The body that POST /tasks would have got. */
  readonly graph: Uint8Array
  readonly taskCount: number
  answer(accepted: number): string
}

/** The action as a graph. `types` that may stand in it are given where nobody checks the graph afterwards. */
function* readAction({ body, maxGraphBytes }: ActionCall, types?: ReadonlySet<string>): Slices<ReadAction> {
  const request = yield* decodeRequest(body)
  const newTaskId = `adapter-${crypto.randomUUID()}`
  const translation = yield* translate(request, { newTaskId, inputs: actionInputs })
  if (types !== undefined) yield* checkTranslation(translation, types)
  const { text, bytes, ids } = yield* encodeGraph(translation, maxGraphBytes)
  const trace = JSON.stringify(translation.trace).slice(0, -1)
  return {
    graph: bytes,
    taskCount: translation.tasks.length,
    answer: (accepted) =>
      `{"accepted":${accepted},"task_ids":${ids},"task_graph":${text},"translation_trace":${trace},"task_ids":${ids}}}`,
  }
}

function* checkTranslation({ tasks, trace }: Translation, types: ReadonlySet<string>): Slices<void> {
  // What a single task depends on may join it later, in a graph that the caller puts together; it cannot join itself.
  const checked =
    trace.normalized_kind === 'task_graph.submit'
      ? tasks
      : tasks.map((task) => ({ ...task, depends_on: task.depends_on?.filter((id) => id === task.id) ?? [] }))
  try {
    yield* validateGraph(checked, types)
  } catch (error) {
    throw asActionFault(error)
  }
}

/** What a check of POST /tasks has against a graph, as a fault of the action that it came from. */
const asActionFault = (error: unknown): unknown =>
  error instanceof ServiceError && error.status === 400 ? invalidAction(error.message) : error

/** Tasks whose texts are encoded together: one by one, small ones would cost more calls than bytes. */
const TASKS_PER_PART = 64

/** The graph as JSON, its bytes, and the ids of its tasks as a JSON array. */
function* encodeGraph({ tasks, annotate }: Translation, maxBytes: number) {
  const parts: Uint8Array[] = []
  let size = 0
  let text = ''
  let ids = ''
  let pending = '{"tasks":['
  const flush = () => {
    const part = new TextEncoder().encode(pending)
    parts.push(part)
    size += part.length
    text += pending
    pending = ''
  }
  for (let i = 0; i < tasks.length; i++) {
    const separator = i === 0 ? '' : ','
    const task = annotate(tasks[i]!)
    pending += separator + JSON.stringify(task)
    ids += separator + JSON.stringify(task.id ?? '')
    // A character has at least one byte: what is counted here is never too much.
    if (size + pending.length > maxBytes) throw tooLarge(maxBytes)
    if (i % TASKS_PER_PART === TASKS_PER_PART - 1) flush()
    if (isYieldDue(i)) yield
  }
  pending += ']}'
  flush()
  if (size > maxBytes) throw tooLarge(maxBytes)
  return { text, ids: `[${ids}]`, bytes: new Uint8Array(Buffer.concat(parts, size)) }
}

const tooLarge = (maxBytes: number) =>
  new ServiceError(
    413,
    `the translated graph is larger than ${maxBytes} bytes (the limit is --max-body-bytes; ids and metadata of an action count for each of its tasks)`,
  )
