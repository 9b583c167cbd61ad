/**
 * Requests and answers of `adapter.v1`, the interface for agents.
 *
 * Like those in `control.ts`, the schemas validate, document and give the types. A `null` means absent and is removed before
 * the check.
 */
import type { Static } from '@sinclair/typebox'
import { count, type Immutable, maybe, oneOf, text, texts } from './answer-schema.ts'
import { Type } from './schema-builder.ts'
import { stringMap } from './string-map.ts'
import { SubmitWarning, TaskGraph, TaskInput } from './submission.ts'

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

const { depends_on, retry, timeout, queue_timeout, secrets } = TaskInput.properties

export const AgentAction = Type.Object(
  {
    kind: optionalText('The action kind or an alias, in upper or lower case. Required.'),
    tool_name: optionalText('For mcp.call: the tool, as server/tool. For cli.run: the skill.'),
    input: Type.Optional(
      Type.Object({}, { expected: 'object', description: 'Parameters, by the input_schema of the action kind.' }),
    ),
    depends_on,
    retry,
    timeout,
    queue_timeout,
    secrets,
  },
  { needs: ['kind'] },
)

export const AgentActionRequest = Type.Object(
  {
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
  },
  { needs: ['action'] },
)
export type AgentActionRequest = Static<typeof AgentActionRequest>

/** How a request was translated. Ids that were not given are empty. */
export const TranslationTrace = Type.Object({
  schema_version: Type.Literal(SCHEMA_VERSION),
  adapter: text('Program that sent the request.'),
  agent_id: text('As sent; empty if absent.'),
  session_id: text('As sent; empty if absent.'),
  action_id: text('As sent; empty if absent.'),
  source_kind: text('The kind as requested.'),
  normalized_kind: oneOf(ACTION_KINDS, 'The kind that it means.'),
  task_ids: texts('Ids of the tasks.'),
})
export type TranslationTrace = Immutable<Static<typeof TranslationTrace>>

/** The answer of POST /adapters/translate and POST /adapters/actions. */
export const ActionResponse = Type.Object(
  {
    accepted: count('Number of accepted tasks; 0 for a translation.'),
    task_ids: texts('Ids of the tasks.'),
    task_graph: TaskGraph,
    warnings: maybe(Type.Array(SubmitWarning, { description: 'Accepted tasks that are certain to fail.' })),
    translation_trace: TranslationTrace,
  },
  { title: 'ActionResponse' },
)
export type ActionResponse = Immutable<Static<typeof ActionResponse>>

/** The answer of GET /adapters/capabilities. */
export const AdapterCapabilities = Type.Object({
  schema_version: Type.Literal(SCHEMA_VERSION),
  profiles: texts('Programs that were tested. Others are accepted, too.'),
  action_kinds: Type.Array(oneOf(ACTION_KINDS, 'A kind of action.')),
  compatibility_notes: texts('Sentences for the authors of clients.'),
})
export type AdapterCapabilities = Immutable<Static<typeof AdapterCapabilities>>

/** One entry of GET /adapters/tools. */
export const AdapterTool = Type.Object({
  name: text('A function name that model providers accept: 1 to 64 letters, digits, "_" and "-".'),
  action_kind: oneOf(ACTION_KINDS, 'The kind of action that a call of the tool becomes.'),
  category: text('Type of the task.'),
  description: text('What the tool does, for models.'),
  input_schema: Type.Object({}, { additionalProperties: true, description: 'JSON Schema of the input of the action.' }),
  aliases: maybe(texts('Other names of the kind.')),
  tool_name: maybe(text('The tool_name of the action, if the tool is a skill.')),
})
export type AdapterTool = Immutable<Static<typeof AdapterTool>>

/** The answer of GET /adapters/tools. */
export const AdapterTools = Type.Object({
  schema_version: Type.Literal(SCHEMA_VERSION),
  tools: Type.Array(AdapterTool),
})
export type AdapterTools = Immutable<Static<typeof AdapterTools>>
