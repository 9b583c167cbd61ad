/** Lists the tools of the MCP servers that tasks can call. */

import { ServiceError } from '../../shared/contract/errors.ts'
import type { McpTools } from '../../shared/contract/mcp.ts'
import { McpFault } from '../mcp-client/fault.ts'
import type { McpServers } from '../mcp-client/servers.ts'
import { toolList } from '../mcp-client/tools.ts'

/**
 * Asks all servers. Throws 503 if this service stops meanwhile. Returns no tools if `signal` fires: the caller is gone.
 */
export async function listTools({ mcpServers }: { mcpServers: McpServers }, signal: AbortSignal): Promise<McpTools> {
  try {
    return toolList(await mcpServers.discover(undefined, signal))
  } catch (error) {
    if (signal.aborted) return { tools: [] }
    throw error instanceof McpFault ? new ServiceError(503, error.message) : error
  }
}
