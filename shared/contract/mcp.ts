/** The tool-protocol endpoints on the wire: `GET /mcp/tools`, `POST /mcp/call`, `GET /mcp/tasks/{id}`. */
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
  /** `server/tool`, as POST /mcp/call takes it. */
  readonly name: string
  readonly category: 'mcp'
  readonly description?: string
  /** JSON Schema of the arguments. */
  readonly input_schema: object
  readonly metadata: { readonly server: string }
}

export interface McpTools {
  readonly tools: readonly McpTool[]
  /** Servers that could not be asked, or tools of which were left out, and why. */
  readonly errors?: readonly { readonly server: string; readonly error: string }[]
}

/** A call, as it stands. Absent values are left out. Times are RFC 3339 in UTC. */
export interface HandleRecord {
  readonly task_id: string
  readonly status: 'accepted' | TaskStatus
  /** The id of the task. */
  readonly handle_id: string
  /** When the call was made; when it was accepted, before that. */
  readonly started_at: string
  readonly progress: readonly ProgressEntry[]
  readonly output?: unknown
  readonly error?: RuntimeError
  readonly finished_at?: string
  readonly duration_ms?: number
}
