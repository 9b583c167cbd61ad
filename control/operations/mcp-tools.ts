/**
 * The tools of the MCP servers that tasks can call: lists them, and calls one as a graph of one task, whose id is the handle
 * of the call.
 */

import { ServiceError } from '../../shared/contract/errors.ts'
import type { HandleRecord, McpCallRequest, McpTools } from '../../shared/contract/mcp.ts'
import { type Caller, isFenced } from '../../shared/http/callers.ts'
import type { RequestTrace } from '../../shared/logs/trace.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { BUILTIN_SERVER } from '../mcp-client/config.ts'
import { McpFault } from '../mcp-client/fault.ts'
import { toolList } from '../mcp-client/tools.ts'
import { literalInput } from '../rules/literal-input.ts'
import type { Task } from '../task/graph.ts'
import { handleRecord } from '../task/handle.ts'
import type { OperationParts } from './parts.ts'
import { submit } from './submit.ts'

/**
 * Asks all servers that the caller may call. Throws 503 if this service stops meanwhile. Returns no tools if `signal` fires: the
 * caller is gone.
 */
export async function listTools(
  { mcpServers }: OperationParts,
  signal: AbortSignal,
  by: Caller | undefined,
): Promise<McpTools> {
  try {
    return toolList(await mcpServers.discover(undefined, signal, !isFenced(by)))
  } catch (error) {
    if (signal.aborted) return { tools: [] }
    throw error instanceof McpFault ? new ServiceError(503, error.message) : error
  }
}

export type ToolCall = McpCallRequest & { readonly tool_name: string }

export interface CallOrigin extends RequestTrace {
  readonly caller: { readonly signal: AbortSignal }
  readonly by: Caller | undefined
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
  const submitted = await submit(parts, { graph: { tasks: [task] } }, origin)
  return accepted(submitted.tasks()[0]!)
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
