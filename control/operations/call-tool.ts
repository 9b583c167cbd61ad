/** Calls a tool of an MCP server: a graph of one task, whose id is the handle of the call. */
import type { HandleRecord, McpCallRequest } from '../../shared/contract/mcp.ts'
import type { Handles } from '../journal/handles.ts'
import { BUILTIN_SERVER } from '../mcp-client/config.ts'
import type { McpServers } from '../mcp-client/servers.ts'
import { type SubmitParts, submit } from './submit.ts'

export interface CallToolParts extends SubmitParts {
  readonly handles: Handles
  readonly mcpServers: Pick<McpServers, 'hasConfigured'>
}

export type ToolCall = McpCallRequest & { readonly tool_name: string }

export interface CallOrigin {
  readonly traceId: string
  readonly caller: { readonly signal: AbortSignal }
}

/** Resolves with the handle once the call is on disk. Throws as `submit` does. */
export async function callTool(parts: CallToolParts, call: ToolCall, origin: CallOrigin): Promise<HandleRecord> {
  const { input, timeout } = call
  const task = {
    id: call.id || `mcp-${crypto.randomUUID()}`,
    type: 'mcp',
    tool_name: toolNameOf(call.tool_name, parts.mcpServers),
    ...(input != null && { input }),
    ...(timeout != null && { timeout }),
  }
  await submit(parts, { tasks: [task] }, origin)
  return parts.handles.accepted(task.id)
}

/** Where no server is configured any name is that of the echo; a task would refuse one without a server before it. */
const toolNameOf = (name: string, { hasConfigured }: CallToolParts['mcpServers']): string =>
  hasConfigured || name.includes('/') || PROTOCOL_CALLS.has(name) ? name : `${BUILTIN_SERVER}/${name}`

const PROTOCOL_CALLS = new Set(['discover', 'call', 'poll'])
