/** Calls a tool of an MCP server: a graph of one task, whose id is the handle of the call. */

import type { HandleRecord, McpCallRequest } from '../../shared/contract/mcp.ts'
import type { RequestTrace } from '../../shared/logs/trace.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { BUILTIN_SERVER } from '../mcp-client/config.ts'
import { literalInput } from '../rules/literal-input.ts'
import type { Task } from '../task/graph.ts'
import { handleRecord } from '../task/handle.ts'
import { knownCall } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { submit } from './submit.ts'

export type ToolCall = McpCallRequest & { readonly tool_name: string }

export interface CallOrigin extends RequestTrace {
  readonly caller: { readonly signal: AbortSignal }
}

/** Resolves with the handle once the call is on disk. Throws as `submit` does. */
export async function callTool(parts: OperationParts, call: ToolCall, origin: CallOrigin): Promise<HandleRecord> {
  const { input, timeout } = call
  const task = {
    id: call.id || `mcp-${crypto.randomUUID()}`,
    type: 'mcp',
    tool_name: toolNameOf(call.tool_name, parts.mcpServers),
    ...(input != null && { input: await runCooperatively(literalInput(input)) }),
    ...(timeout != null && { timeout }),
  }
  await submit(parts, { graph: { tasks: [task] } }, origin)
  return accepted(knownCall(parts.store, task.id))
}

/** The answer to the caller: the state at the acceptance, even if the call has progressed since. */
function accepted(task: Task): HandleRecord {
  const { task_id, handle_id, started_at } = handleRecord(task)
  return { task_id, status: 'accepted', handle_id, started_at, progress: [] }
}

/** Without configured servers, a bare name belongs to the builtin server. */
const toolNameOf = (name: string, { hasConfigured }: OperationParts['mcpServers']): string =>
  hasConfigured || name.includes('/') || PROTOCOL_CALLS.has(name) ? name : `${BUILTIN_SERVER}/${name}`

const PROTOCOL_CALLS = new Set(['discover', 'call', 'poll'])
