/** Requests and answers of `GET /mcp/tools`, `POST /mcp/call` and `GET /mcp/tasks/{id}`. */
import { type Static, Type } from '@sinclair/typebox'
import { type ProgressEntry, type RuntimeError, TaskInput } from './control.ts'
import type { TaskStatus } from './task-status.ts'

/** The body of POST /mcp/call. A `null` means absent. */
export const McpCallRequest = Type.Object({
  id: Type.Optional(Type.String({ expected: 'string', description: 'Id of the task. Without one, an id is made.' })),
  tool_name: Type.Optional(
    Type.String({ expected: 'string', description: 'The tool, as server/tool. Required.', examples: ['builtin/echo'] }),
  ),
  input: Type.Optional(Type.Unknown({ description: 'Arguments of the tool.' })),
  timeout: TaskInput.properties.timeout,
})
export type McpCallRequest = Static<typeof McpCallRequest>

/** One entry of GET /mcp/tools. */
export interface McpTool {
  /** `server/tool`, the `tool_name` of POST /mcp/call. */
  readonly name: string
  readonly category: 'mcp'
  readonly description?: string
  /** JSON Schema of the arguments. */
  readonly input_schema: object
  readonly metadata: { readonly server: string }
}

export interface McpTools {
  readonly tools: readonly McpTool[]
  /** Servers that could not be asked, or whose tools are incomplete, with the reason. */
  readonly errors?: readonly { readonly server: string; readonly error: string }[]
}

/** The state of a call. Absent values are left out. Times are RFC 3339 in UTC. */
export interface HandleRecord {
  readonly task_id: string
  readonly status: 'accepted' | TaskStatus
  /** The id of the task. */
  readonly handle_id: string
  /** Start of the call; before that, time of its acceptance. */
  readonly started_at: string
  readonly progress: readonly ProgressEntry[]
  readonly output?: unknown
  readonly error?: RuntimeError
  readonly finished_at?: string
  readonly duration_ms?: number
}
