/** Requests and answers of `GET /mcp/tools`, `POST /mcp/call` and `GET /mcp/tasks/{id}`. */
import type { Static } from '@sinclair/typebox'
import { count, type Immutable, maybe, oneOf, text, time } from './answer-schema.ts'
import { ProgressEntry, RuntimeError } from './control.ts'
import { Type } from './schema-builder.ts'
import { TaskInput } from './submission.ts'
import { TASK_STATUSES } from './task-status.ts'

/** The body of POST /mcp/call. A `null` means absent. */
export const McpCallRequest = Type.Object(
  {
    id: Type.Optional(Type.String({ expected: 'string', description: 'Id of the task. Without one, an id is made.' })),
    tool_name: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'The tool, as server/tool. Required.',
        examples: ['builtin/echo'],
      }),
    ),
    input: Type.Optional(Type.Unknown({ description: 'Arguments of the tool.' })),
    timeout: TaskInput.properties.timeout,
  },
  { needs: ['tool_name'] },
)
export type McpCallRequest = Static<typeof McpCallRequest>

/** One entry of GET /mcp/tools. */
export const McpTool = Type.Object({
  name: text('server/tool, the tool_name of POST /mcp/call.'),
  category: Type.Literal('mcp'),
  description: maybe(text('What the tool does, in the words of its server.')),
  input_schema: Type.Object({}, { additionalProperties: true, description: 'JSON Schema of the arguments.' }),
  metadata: Type.Object({ server: text('Name of the server.') }),
})
export type McpTool = Immutable<Static<typeof McpTool>>

/** The answer of GET /mcp/tools. */
export const McpTools = Type.Object({
  tools: Type.Array(McpTool),
  errors: maybe(
    Type.Array(Type.Object({ server: text('Name of the server.'), error: text('What is wrong.') }), {
      description: 'Servers that could not be asked, or whose tools are incomplete.',
    }),
  ),
})
export type McpTools = Immutable<Static<typeof McpTools>>

/** The state of a call. Absent values are left out. Times are RFC 3339 in UTC. */
export const HandleRecord = Type.Object(
  {
    task_id: text('Id of the task.'),
    status: oneOf(['accepted', ...TASK_STATUSES], 'State of the call.'),
    handle_id: text('The id of the task.'),
    started_at: time('Start of the call; before that, time of its acceptance.'),
    progress: Type.Array(ProgressEntry, { description: 'The last 100 reports, the newest last.' }),
    output: maybe(Type.Unknown({ description: 'What the tool returned.' })),
    error: maybe(RuntimeError),
    finished_at: maybe(time('When the call ended.')),
    duration_ms: maybe(count('Milliseconds of the call.')),
  },
  { title: 'HandleRecord' },
)
export type HandleRecord = Immutable<Static<typeof HandleRecord>>
