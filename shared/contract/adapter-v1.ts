/**
 * Requests and answers of `adapter.v1`, the interface for agents.
 *
 * Like those in `control.ts`, the schemas validate, document and give the types. A `null` means absent and is removed before
 * the check.
 */
import { type Static, Type } from '@sinclair/typebox'
import { type SubmitWarning, type TaskGraph, TaskInput } from './control.ts'
import { stringMap } from './string-map.ts'

export const SCHEMA_VERSION = 'adapter.v1'

/** Agents that were tested with this contract. Other names are accepted, too. */
export const PROFILES = ['generic', 'claudecode', 'codex', 'openclaw'] as const

export const ACTION_KINDS = [
  'os.shell',
  'os.file',
  'os.http',
  'os.dns',
  'os.tcp',
  'os.sleep',
  'os.noop',
  'runtime.command',
  'runtime.script',
  'mcp.call',
  'cli.run',
  'task_graph.submit',
] as const
export type ActionKind = (typeof ACTION_KINDS)[number]

const optionalText = (description: string) => Type.Optional(Type.String({ expected: 'string', description }))

const { depends_on, retry, timeout } = TaskInput.properties

export const AgentAction = Type.Object({
  kind: optionalText('The action kind or an alias, in upper or lower case. Required.'),
  tool_name: optionalText('For mcp.call: the tool, as server/tool. For cli.run: the skill.'),
  input: Type.Optional(
    Type.Object({}, { expected: 'object', description: 'Parameters, by the input_schema of the action kind.' }),
  ),
  depends_on,
  retry,
  timeout,
})

export const AgentActionRequest = Type.Object({
  adapter: optionalText('Program that sends the request, such as codex. Default generic.'),
  agent_id: optionalText('Id of the agent. Stored with the task.'),
  session_id: optionalText('Id of the session. Stored with the task.'),
  action_id: optionalText('Id of the task. Generated if absent.'),
  metadata: Type.Optional(
    stringMap({
      expected: 'object of strings',
      description: 'Annotations of the task.',
    }),
  ),
  action: Type.Optional(AgentAction),
})
export type AgentActionRequest = Static<typeof AgentActionRequest>

/** How a request was translated. Ids that were not given are empty. */
export interface TranslationTrace {
  readonly schema_version: typeof SCHEMA_VERSION
  readonly adapter: string
  readonly agent_id: string
  readonly session_id: string
  readonly action_id: string
  /** The kind as requested. */
  readonly source_kind: string
  readonly normalized_kind: ActionKind
  readonly task_ids: readonly string[]
}

/** The answer of POST /adapters/translate and POST /adapters/actions. */
export interface ActionResponse {
  /** Number of accepted tasks; 0 for a translation. */
  readonly accepted: number
  readonly task_ids: readonly string[]
  readonly task_graph: Static<typeof TaskGraph>
  /** Absent if there are none. */
  readonly warnings?: readonly SubmitWarning[]
  readonly translation_trace: TranslationTrace
}

/** The answer of GET /adapters/capabilities. */
export interface AdapterCapabilities {
  readonly schema_version: typeof SCHEMA_VERSION
  readonly profiles: readonly string[]
  readonly action_kinds: readonly ActionKind[]
  readonly compatibility_notes: readonly string[]
}

/** One entry of GET /adapters/tools. */
export interface AdapterTool {
  /** A function name that model providers accept: `[a-zA-Z0-9_-]{1,64}`. */
  readonly name: string
  readonly action_kind: ActionKind
  readonly category: string
  readonly description: string
  /** JSON Schema of the action's `input`. */
  readonly input_schema: object
  readonly aliases?: readonly string[]
  /** The action's `tool_name`, if the tool is a skill. */
  readonly tool_name?: string
}

export interface AdapterTools {
  readonly schema_version: typeof SCHEMA_VERSION
  readonly tools: readonly AdapterTool[]
}
