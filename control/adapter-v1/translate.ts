/**
 * Translates an action to a graph of tasks, with a trace of the translation. Pure: the same request and id give the
 * same graph.
 *
 * Actions become tasks of the newer form (`type` and `tool_name`, parameters in `input`). Annotations name the agent.
 * Annotations of the adapter override those of a task, which override `metadata`.
 */
import {
  ACTION_KINDS,
  type ActionKind,
  SCHEMA_VERSION,
  type TranslationTrace,
} from '../../shared/contract/adapter-v1.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { UnknownFields } from '../../shared/request/unknown-names.ts'
import { isObject } from '../../shared/text/json.ts'
import { checkValue } from '../json/body.ts'
import { decodeOptions, decodeTasks } from '../rules/decode.ts'
import { type GraphOptions, NO_GRAPH_OPTIONS } from '../rules/graph-options.ts'
import { literalInput } from '../rules/literal-input.ts'
import { graphFieldFaults, isInputField, unknownTaskField } from '../task/known-fields.ts'
import { checkInput, type Input, type InputSchemas, refuseUnknownInput } from './input-check.ts'
import { KINDS, type ResolvedKind, resolveKind } from './kinds.ts'
import { type DecodedRequest, invalidAction } from './request.ts'
import { runtimeRequest } from './runtime-request.ts'

export interface TranslateOptions {
  /** The id of the task if the request has none. */
  readonly newTaskId: string
  readonly inputs: InputSchemas
  readonly unknownFields: UnknownFields
}

export interface Translation {
  /** Without the annotations of the adapter, which are the same for all and may be long. */
  readonly tasks: TaskInput[]
  /** The options of a submitted graph. */
  readonly options: GraphOptions
  /** The task with all of its annotations. */
  readonly annotate: (task: TaskInput) => TaskInput
  /** Without the ids, of which there may be many. */
  readonly trace: Omit<TranslationTrace, 'task_ids'>
}

/** Translates a request. Throws 400. Checks only the types of the fields of a submitted graph. */
export function* translate(request: DecodedRequest, options: TranslateOptions): Steps<Translation> {
  const { action } = request
  const resolved = resolveKind(action.kind)
  if (resolved === undefined) {
    throw invalidAction(`unknown action kind ${JSON.stringify(action.kind)} (available: ${ACTION_KINDS.join(', ')})`)
  }
  const graph =
    resolved.kind === 'task_graph.submit'
      ? yield* graphOf(request, options)
      : { tasks: [yield* taskOf(request, resolved, options)], options: NO_GRAPH_OPTIONS }
  const trace: Translation['trace'] = {
    schema_version: SCHEMA_VERSION,
    adapter: request.adapter?.toLowerCase() || 'generic',
    agent_id: request.agent_id ?? '',
    session_id: request.session_id ?? '',
    action_id: request.action_id ?? '',
    source_kind: action.kind,
    normalized_kind: resolved.kind,
  }
  return { ...graph, annotate: annotator(request, trace), trace }
}

/** The single task of an action. Placeholders in its input are data, because there are no other tasks to refer to. */
function* taskOf(request: DecodedRequest, resolved: ResolvedKind, options: TranslateOptions): Steps<TaskInput> {
  const { depends_on, retry, timeout, queue_timeout, secrets } = request.action
  const { input, ...tool } = toolOf(request, resolved, options)
  return {
    id: request.action_id || options.newTaskId,
    ...tool,
    ...(input !== undefined && { input: yield* literalInput(input) }),
    ...(depends_on !== undefined && { depends_on }),
    ...(retry !== undefined && { retry }),
    ...(timeout !== undefined && { timeout }),
    ...(queue_timeout !== undefined && { queue_timeout }),
    ...(secrets !== undefined && { secrets }),
  }
}

/** The tool of an action, and its input. */
function toolOf(
  { action }: DecodedRequest,
  { kind, preset }: ResolvedKind,
  { inputs, unknownFields }: TranslateOptions,
): TaskInput {
  const given = (action.input ?? {}) as Input
  checkValue(given, 'action.input')
  const checked = () => {
    if (unknownFields === 'refuse') refuseUnknownInput(kind, inputs[kind], given)
    return checkInput(kind, inputs[kind], withPreset(given, preset, action.kind))
  }
  switch (kind) {
    case 'runtime.command':
    case 'runtime.script':
      return { type: 'runtime', tool_name: toolName(kind), input: runtimeRequest(kind, checked()) }
    case 'mcp.call':
      // A named tool gets the whole input unchanged.
      if (action.tool_name) return { type: 'mcp', tool_name: action.tool_name, ...inputField(action.input) }
      if (isBlank(checked().tool)) throw invalidAction('tool_name is required for mcp.call')
      return { type: 'mcp', tool_name: 'call', input: given }
    case 'cli.run':
      if (isBlank(checked().command) && !action.tool_name) {
        throw invalidAction('input.command is required for cli.run (or tool_name, for a skill)')
      }
      return {
        type: 'cli-skills',
        ...(action.tool_name && { tool_name: action.tool_name }),
        ...inputField(action.input),
      }
    default: {
      const input = checked()
      if (kind === 'os.shell' && isBlank(input.command) && isBlank(input.script)) {
        throw invalidAction('input.command is required for os.shell (or input.script)')
      }
      const isGiven = action.input !== undefined || Object.keys(preset).length > 0
      return {
        type: KINDS[kind].category,
        tool_name: toolName(kind),
        ...(isGiven && { input: { ...given, ...preset } }),
      }
    }
  }
}

/** `os.shell` is the tool `shell`. */
const toolName = (kind: ActionKind): string => kind.slice(kind.indexOf('.') + 1)

const inputField = (input: object | undefined) => (input === undefined ? {} : { input })

const isBlank = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

/** Refuses an input whose `action` contradicts the kind, such as `write` for `file.read`. */
function withPreset(given: Input, preset: ResolvedKind['preset'], sourceKind: string): Input {
  for (const [name, value] of Object.entries(preset)) {
    const other = given[name] ?? value
    if (other !== value) throw invalidAction(`input.${name} must be "${value}" for ${sourceKind}, or left out`)
  }
  return { ...given, ...preset }
}

/** The tasks and options of a submitted graph. */
function* graphOf(
  { action }: DecodedRequest,
  { inputs, unknownFields }: TranslateOptions,
): Steps<Pick<Translation, 'tasks' | 'options'>> {
  const { depends_on, retry, timeout, queue_timeout, secrets } = action
  // These fields belong to a single task. To drop them silently would ignore the caller's request.
  for (const [field, isMeant] of [
    ['depends_on', (depends_on ?? []).length > 0],
    ['retry', (retry ?? 0) !== 0],
    ['timeout', (timeout ?? 0) > 0],
    ['queue_timeout', (queue_timeout ?? 0) > 0],
    ['secrets', secrets != null],
  ] as const) {
    if (isMeant) throw invalidAction(`action.${field} cannot be given for task_graph.submit: give it to its tasks`)
  }
  const input = (action.input ?? {}) as Input
  if (unknownFields === 'refuse') {
    const { task_graph, ...rest } = input
    refuseUnknownInput('task_graph.submit', inputs['task_graph.submit'], rest)
    if (isObject(task_graph)) refuseGraphField(task_graph)
  }
  const fields = ['tasks', 'task_graph'].filter((field) => Object.hasOwn(input, field))
  const given = fields.filter((field) => input[field] !== null)
  if (fields.length === 0) throw invalidAction('input.tasks is required for task_graph.submit (or input.task_graph)')
  if (given.length === 2) throw invalidAction('input.tasks and input.task_graph exclude each other')
  const isWrapped = given[0] === 'task_graph'
  const decoded = yield* isWrapped
    ? decodeTasks(input.task_graph, 'action.input.task_graph')
    : decodeTasks(input, 'action.input')
  const tasks: TaskInput[] = []
  for (let i = 0; i < decoded.length; i++) {
    tasks.push(meantFields(decoded[i]!, unknownFields))
    if (isYieldDue(i)) yield
  }
  const isGraph = isWrapped && isObject(input.task_graph)
  const options = isGraph ? decodeOptions(input.task_graph as object, 'action.input.task_graph') : NO_GRAPH_OPTIONS
  return { tasks, options }
}

function refuseGraphField(graph: object): void {
  const [fault] = graphFieldFaults(graph)
  if (fault !== undefined) throw invalidAction(fault)
}

/** The fields that affect a task. Keeps unknown fields if the checks of the graph are to refuse them. */
function meantFields(task: TaskInput, unknownFields: UnknownFields): TaskInput {
  const isMeant = (name: string) =>
    isInputField(name) || (unknownFields === 'refuse' && unknownTaskField({ [name]: true }) !== undefined)
  return Object.fromEntries(
    Object.entries(task).filter(([name, value]) => isMeant(name) && (value !== null || !isInputField(name))),
  )
}

/** Adds annotations about the origin to a task. */
function annotator(
  { metadata }: DecodedRequest,
  { schema_version, adapter, normalized_kind, agent_id, session_id, action_id }: Translation['trace'],
): (task: TaskInput) => TaskInput {
  const audit = {
    adapter_schema: schema_version,
    adapter,
    action_kind: normalized_kind,
    ...(agent_id !== '' && { agent_id }),
    ...(session_id !== '' && { session_id }),
    ...(action_id !== '' && { action_id }),
  }
  return (task) => ({ ...task, annotations: { ...metadata, ...task.annotations, ...audit } })
}
