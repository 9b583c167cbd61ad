/**
 * Takes in an action of an agent: translates it to a graph, which then goes the way of every graph.
 *
 * The journal holds the text of the graph, never the action, so a restart knows nothing of adapters. All of this is in
 * slices, as an action may be a graph of 100,000 tasks.
 */
import type { SubmitWarning } from '../../shared/contract/control.ts'
import { ServiceError } from '../../shared/errors.ts'
import { inRanges, isYieldDue, runCooperatively, type Steps } from '../../shared/steps.ts'
import { decodeRequest, invalidAction } from '../adapter-v1/request.ts'
import { type Translation, translate } from '../adapter-v1/translate.ts'
import { refuseHiddenValues, shownTask } from '../graph/hidden-env.ts'
import { validateGraph } from '../graph/validate.ts'
import { actionInputs } from './action-inputs.ts'
import { reviewedTask, reviewGraph } from './review.ts'
import { type Intake, type Submission, submitGraph, warningsMember } from './submit.ts'

/** Types that actions become. A translation may name them whether or not this service can run them. */
const ACTION_TYPES = ['os', 'runtime', 'mcp', 'cli-skills']

export interface ActionCall {
  readonly body: Uint8Array
  /** Bytes that the translated graph may have. It repeats annotations for each task, so it can outgrow the action. */
  readonly maxGraphBytes: number
}

/** An `ActionResponse` as JSON. Nothing is stored. Throws `ServiceError`. */
export async function translateAction(intake: Intake, call: ActionCall): Promise<string> {
  return runCooperatively(translation(intake, call))
}

function* translation(intake: Intake, call: ActionCall): Steps<string> {
  const { translated, answer } = yield* readAction(intake, call)
  const warnings = yield* checkTranslation(intake, translated)
  return answer(0, warnings.length === 0 ? undefined : JSON.stringify(warnings))
}

/** Resolves with an `ActionResponse` as JSON once the graph is on disk. Throws `ServiceError` as `submitGraph` does. */
export async function submitAction(intake: Intake, call: ActionCall, from: Submission): Promise<string> {
  const { graph, translated, answer } = await runCooperatively(readAction(intake, call))
  try {
    return await submitGraph(intake, graph, {
      ...from,
      answerWith: (warnings) => answer(translated.tasks.length, warnings),
    })
  } catch (error) {
    throw asActionFault(error)
  }
}

interface ReadAction {
  /** The body that POST /tasks would have got. */
  readonly graph: Uint8Array
  readonly translated: Translation
  /** `warnings` is a JSON array. */
  answer(accepted: number, warnings: string | undefined): string
}

/** The action as a graph, which nobody has checked yet. */
function* readAction({ unknownFields }: Intake, { body, maxGraphBytes }: ActionCall): Steps<ReadAction> {
  const request = yield* decodeRequest(body, unknownFields)
  const newTaskId = `adapter-${crypto.randomUUID()}`
  const translated = yield* translate(request, { newTaskId, inputs: actionInputs, unknownFields })
  const { text, bytes, ids } = yield* encodeGraph(translated, maxGraphBytes)
  const trace = JSON.stringify(translated.trace).slice(0, -1)
  return {
    graph: bytes,
    translated,
    answer: (accepted, warnings) =>
      `{"accepted":${accepted},"task_ids":${ids},"task_graph":${text}${warningsMember(warnings)},"translation_trace":${trace},"task_ids":${ids}}}`,
  }
}

/** Checks a graph that is not submitted as if it were, and gives its warnings. */
function* checkTranslation(intake: Intake, { tasks, trace }: Translation): Steps<readonly SubmitWarning[]> {
  const types = new Set([...intake.executors.types, ...ACTION_TYPES])
  // What a single task depends on may join it later, in a graph that the caller puts together; it cannot join itself.
  const checked =
    trace.normalized_kind === 'task_graph.submit'
      ? tasks
      : tasks.map((task) => ({ ...task, depends_on: task.depends_on?.filter((id) => id === task.id) ?? [] }))
  try {
    const { tasks: valid } = yield* validateGraph(checked, types)
    yield* inRanges(valid.length, (from, to) => refuseHiddenValues(valid, from, to))
    return yield* reviewGraph(intake, { fields: {}, inputs: valid }, valid.map(reviewedTask))
  } catch (error) {
    throw asActionFault(error)
  }
}

/** What a check of POST /tasks has against a graph, as a fault of the action that it came from. */
const asActionFault = (error: unknown): unknown =>
  error instanceof ServiceError && error.status === 400 ? invalidAction(error.message) : error

/** Tasks whose texts are encoded together: one by one, small ones would cost more calls than bytes. */
const TASKS_PER_PART = 64

/** The graph as it is shown, its bytes as they are submitted, and the ids of its tasks; all JSON. */
function* encodeGraph({ tasks, annotate }: Translation, maxBytes: number) {
  const parts: Uint8Array[] = []
  let size = 0
  let text = '{"tasks":['
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
    const json = JSON.stringify(task)
    const shown = shownTask(task)
    pending += separator + json
    text += separator + (shown === task ? json : JSON.stringify(shown))
    ids += separator + JSON.stringify(task.id ?? '')
    // A character has at least one byte: what is counted here is never too much.
    if (size + pending.length > maxBytes) throw tooLarge(maxBytes)
    if (i % TASKS_PER_PART === TASKS_PER_PART - 1) flush()
    if (isYieldDue(i)) yield
  }
  pending += ']}'
  text += ']}'
  flush()
  if (size > maxBytes) throw tooLarge(maxBytes)
  return { text, ids: `[${ids}]`, bytes: new Uint8Array(Buffer.concat(parts, size)) }
}

const tooLarge = (maxBytes: number) =>
  new ServiceError(
    413,
    `the translated graph is larger than ${maxBytes} bytes (the limit is --max-body-bytes; ids and metadata of an action count for each of its tasks)`,
  )
