/** Tools of MCP servers, as they are found and as `GET /mcp/tools` lists them. Pure. */
import type { McpTools } from '../../shared/contract/mcp.ts'

/** A tool and its server. */
export interface NamedTool {
  readonly server: string
  readonly name: string
  readonly description?: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: object
}

export interface FoundTools {
  readonly tools: readonly NamedTool[]
  /** Faults of servers that could not be asked, or of which tools were left out. */
  readonly errors: readonly { readonly server: string; readonly error: string }[]
}

/** The same on the wire. */
export const toolList = ({ tools, errors }: FoundTools): McpTools => ({
  tools: tools.map(({ server, name, description, inputSchema }) => ({
    name: `${server}/${name}`,
    category: 'mcp',
    ...(description !== undefined && { description }),
    input_schema: inputSchema,
    metadata: { server },
  })),
  ...(errors.length > 0 && { errors }),
})
